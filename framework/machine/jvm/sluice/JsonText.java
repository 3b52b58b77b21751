package sluice;

import java.io.ByteArrayOutputStream;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Locale;

/**
 * The bytes of a JSON text and a place in them. It knows the grammar of RFC 8259, to the letter, and nothing of columns.
 *
 * <p>Every string is checked to be UTF-8, also where nobody asks for it: there are no bytes of a JSON text that were not looked at.
 */
final class JsonText {
  /** Objects and lists within each other; more would be an attack on the stack. */
  static final int DEEPEST = 1000;

  private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final long ONES = 0x0101010101010101L;
  private static final long HIGHEST_BITS = 0x8080808080808080L;

  final byte[] bytes;
  final int end;
  int at;
  private int depth;

  /** The last string or number: bytes of the message, or others where the string has escapes. */
  byte[] text;
  int from;
  int to;
  /** Whether the last string has half of a surrogate pair, which is no character. */
  boolean isHalf;
  /** Whether the last number has neither a point nor an exponent. */
  boolean isWhole;

  /** For the words of errors: `value` or `key`. */
  private final String part;

  JsonText(byte[] bytes, int from, String part) {
    this.part = part;
    this.bytes = bytes;
    this.at = from;
    this.end = bytes.length;
  }

  /** The first byte of what comes next, which is not yet passed; 0 at the end. */
  int next() {
    while (at < end) {
      byte c = bytes[at];
      if (c != ' ' && c != '\n' && c != '\r' && c != '\t') {
        return c;
      }
      at++;
    }
    return 0;
  }

  boolean isAtEnd() {
    return next() == 0 && at == end;
  }

  /** Passes the `{` or `[` that is next; whether anything is inside. */
  boolean opens(char close) {
    if (++depth > DEEPEST) {
      throw BadMessage.undecodable("the JSON is nested deeper than " + DEEPEST + " levels");
    }
    at++;
    if (next() != close) {
      return true;
    }
    depth--;
    at++;
    return false;
  }

  /** Passes a comma or the closing bracket; whether another item follows. */
  boolean more(char close) {
    int c = next();
    if (c == ',') {
      at++;
      return true;
    }
    if (c != close) {
      throw unexpected();
    }
    at++;
    depth--;
    return false;
  }

  /** A field's name and the colon. */
  void name() {
    if (next() != '"') {
      throw unexpected();
    }
    string();
    if (next() != ':') {
      throw unexpected();
    }
    at++;
  }

  /** Passes the name and the colon if they are next. `quoted` is the name with its quotes: what is known need not be looked through. */
  boolean passes(byte[] quoted) {
    if (next() != '"' || quoted.length > end - at || !Arrays.equals(bytes, at, at + quoted.length, quoted, 0, quoted.length)) {
      return false;
    }
    at += quoted.length;
    if (next() != ':') {
      throw unexpected();
    }
    at++;
    return true;
  }

  /** The string whose quote is next. */
  void string() {
    byte[] bytes = this.bytes;
    int i = at + 1;
    text = bytes;
    from = i;
    isHalf = false;
    while (i < end) {
      if (i + Long.BYTES <= end) {
        int plain = plainBytes((long) LONGS.get(bytes, i));
        i += plain;
        if (plain == Long.BYTES) {
          continue;
        }
      }
      byte c = bytes[i];
      if (c == '"') {
        to = i;
        at = i + 1;
        return;
      } else if (c == '\\') {
        escaped(i);
        return;
      }
      i = c >= ' ' ? i + 1 : character(i);
    }
    at = end;
    throw unexpected();
  }

  /** How many of eight bytes, from the first, are ASCII and neither a quote, a backslash nor a control character. */
  private static int plainBytes(long word) {
    long quote = word ^ 0x2222222222222222L;
    long backslash = word ^ 0x5C5C5C5C5C5C5C5CL;
    // A byte's highest bit: whether the byte was 0 before 1 was subtracted, or below a space before that was. Behind the first such byte
    // a borrow can set others.
    long control = (word - 0x2020202020202020L) & ~word;
    long found = ((quote - ONES) & ~quote | (backslash - ONES) & ~backslash | control | word) & HIGHEST_BITS;
    return Long.numberOfTrailingZeros(found) >>> 3;
  }

  /** The rest of a string, from its first escape on. */
  private void escaped(int first) {
    ByteArrayOutputStream out = new ByteArrayOutputStream(2 * (first - from) + 16);
    int plain = from;
    int i = first;
    while (i < end) {
      byte c = bytes[i];
      if (c == '"') {
        out.write(bytes, plain, i - plain);
        at = i + 1;
        text = out.toByteArray();
        from = 0;
        to = text.length;
        return;
      } else if (c == '\\') {
        out.write(bytes, plain, i - plain);
        i = escape(i + 1, out);
        plain = i;
      } else {
        i = c >= ' ' ? i + 1 : character(i);
      }
    }
    at = end;
    throw unexpected();
  }

  /** Writes the character of an escape, which stands behind a backslash. Returns where it ends. */
  private int escape(int i, ByteArrayOutputStream out) {
    int place = i < end ? "\"\\/bfnrt".indexOf(bytes[i]) : -1;
    if (place >= 0) {
      out.write("\"\\/\b\f\n\r\t".charAt(place));
      return i + 1;
    }
    if (i >= end || bytes[i] != 'u') {
      at = i;
      throw unexpected();
    }
    int unit = hex(i + 1);
    int behind = i + 5;
    if (Character.isHighSurrogate((char) unit) && behind + 1 < end && bytes[behind] == '\\' && bytes[behind + 1] == 'u') {
      int low = hex(behind + 2);
      if (Character.isLowSurrogate((char) low)) {
        out.writeBytes(Character.toString(Character.toCodePoint((char) unit, (char) low)).getBytes(StandardCharsets.UTF_8));
        return behind + 6;
      }
    }
    isHalf |= Character.isSurrogate((char) unit);
    out.writeBytes(Character.toString(unit).getBytes(StandardCharsets.UTF_8));
    return behind;
  }

  private int hex(int i) {
    int unit = 0;
    for (int n = i; n < i + 4; n++) {
      int digit = n < end ? Character.digit(bytes[n], 16) : -1;
      if (digit < 0) {
        at = Math.min(n, end);
        throw unexpected();
      }
      unit = unit << 4 | digit;
    }
    return unit;
  }

  /** Passes a character that is not ASCII; a control character is none that a string may have. */
  private int character(int i) {
    if (bytes[i] >= 0) {
      at = i;
      throw unexpected();
    }
    int behind = Utf8.after(bytes, i, end);
    if (behind < 0) {
      throw BadMessage.undecodable("the " + part + " is not UTF-8 at byte " + i);
    }
    return behind;
  }

  /** The number that is next. */
  void number() {
    text = bytes;
    from = at;
    int i = bytes[at] == '-' ? at + 1 : at;
    i = i < end && bytes[i] == '0' ? i + 1 : digits(i);
    isWhole = true;
    if (i < end && bytes[i] == '.') {
      isWhole = false;
      i = digits(i + 1);
    }
    if (i < end && (bytes[i] | 0x20) == 'e') {
      isWhole = false;
      boolean isSigned = i + 1 < end && (bytes[i + 1] == '+' || bytes[i + 1] == '-');
      i = digits(isSigned ? i + 2 : i + 1);
    }
    to = i;
    at = i;
  }

  private int digits(int first) {
    int i = first;
    while (i < end && bytes[i] >= '0' && bytes[i] <= '9') {
      i++;
    }
    if (i == first) {
      at = Math.min(i, end);
      throw unexpected();
    }
    return i;
  }

  /** The word that is next, one of true, false and null. */
  void word(String word) {
    for (int i = 0; i < word.length(); i++, at++) {
      if (at >= end || bytes[at] != word.charAt(i)) {
        throw unexpected();
      }
    }
  }

  /** Passes any value. */
  void skip() {
    int c = next();
    if (c == '"') {
      string();
    } else if (c == '-' || c >= '0' && c <= '9') {
      number();
    } else if (c == '{') {
      for (boolean more = opens('}'); more; more = more('}')) {
        name();
        skip();
      }
    } else if (c == '[') {
      for (boolean more = opens(']'); more; more = more(']')) {
        skip();
      }
    } else {
      word(c == 't' ? "true" : c == 'f' ? "false" : "null");
    }
  }

  BadMessage unexpected() {
    if (at >= end) {
      return BadMessage.undecodable("the " + part + " is not JSON: it is cut off");
    }
    int c = bytes[at] & 0xFF;
    String what = c > ' ' && c < 0x7F ? "`" + (char) c + "`" : String.format(Locale.ROOT, "the byte 0x%02X", c);
    return BadMessage.undecodable("the " + part + " is not JSON: " + what + " is not expected at byte " + at);
  }
}
