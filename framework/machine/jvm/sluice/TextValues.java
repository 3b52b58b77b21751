package sluice;

import java.math.BigInteger;

/** Values that are written as text: dates, times, and bytes in base64. */
final class TextValues {
  private TextValues() {}

  /** Puts the value of the string that was read last. Returns whether it says one of the type. */
  static boolean put(Type type, JsonText in, Cells cells, int place) {
    switch (type.kind) {
      case DATE:
        int day = Times.date(in.text, in.from, in.to);
        cells.putNumber(place, day);
        return day != Times.NO_DAY;
      case TIMESTAMP:
      case TIMESTAMP_NTZ:
        long micros = Times.timestamp(in.text, in.from, in.to, type.kind == Type.Kind.TIMESTAMP);
        cells.putNumber(place, micros);
        return micros != Times.NO_TIME;
      case BINARY:
        return put(base64(in.text, in.from, in.to), cells, place);
      default:
        byte[] bytes = base64(in.text, in.from, in.to);
        boolean isNumber = bytes != null && bytes.length > 0;
        return put(isNumber ? Numbers.decimal(new BigInteger(bytes), type.scale, type) : null, cells, place);
    }
  }

  private static boolean put(Object value, Cells cells, int place) {
    cells.put(place, value);
    return value != null;
  }

  /** Base64 of RFC 4648, whose padding may be left out; no other letter, no line break, no bits that are left over. */
  static byte[] base64(byte[] text, int from, int to) {
    int end = to;
    if ((to - from) % 4 == 0) {
      for (int n = 0; n < 2 && end > from && text[end - 1] == '='; n++) {
        end--;
      }
    }
    int length = end - from;
    if (length % 4 == 1) {
      return null;
    }
    byte[] bytes = new byte[(int) (length * 3L / 4)];
    int bits = 0;
    int count = 0;
    int place = 0;
    for (int i = from; i < end; i++) {
      int six = six(text[i]);
      if (six < 0) {
        return null;
      }
      bits = bits << 6 | six;
      count += 6;
      if (count >= 8) {
        count -= 8;
        bytes[place++] = (byte) (bits >> count);
        bits &= (1 << count) - 1;
      }
    }
    return bits == 0 ? bytes : null;
  }

  private static int six(byte letter) {
    if (letter >= 'A' && letter <= 'Z') {
      return letter - 'A';
    } else if (letter >= 'a' && letter <= 'z') {
      return letter - 'a' + 26;
    } else if (letter >= '0' && letter <= '9') {
      return letter - '0' + 52;
    }
    return letter == '+' ? 62 : letter == '/' ? 63 : -1;
  }
}
