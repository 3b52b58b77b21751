package sluice;

/** Whether bytes are UTF-8: no overlong form, no half of a surrogate pair, nothing beyond U+10FFFF. */
final class Utf8 {
  private Utf8() {}

  static boolean isValid(byte[] bytes, int from, int to) {
    int i = from;
    while (i < to) {
      if (bytes[i] >= 0) {
        i++;
      } else {
        i = after(bytes, i, to);
        if (i < 0) {
          return false;
        }
      }
    }
    return true;
  }

  /** Where the character of several bytes that begins here ends; -1 if it is none. */
  static int after(byte[] bytes, int at, int end) {
    int first = bytes[at] & 0xFF;
    if (first < 0xC2 || first > 0xF4) {
      return -1;
    }
    int length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (end - at < length) {
      return -1;
    }
    int second = bytes[at + 1] & 0xFF;
    int low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    int high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (second < low || second > high) {
      return -1;
    }
    for (int i = 2; i < length; i++) {
      if ((bytes[at + i] & 0xC0) != 0x80) {
        return -1;
      }
    }
    return at + length;
  }
}
