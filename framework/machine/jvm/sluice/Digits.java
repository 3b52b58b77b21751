package sluice;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;

/**
 * The digits of a JSON number that matter, and where the point stands: `1.2300e2` is 123 with the exponent 0.
 *
 * <p>Noughts at both ends do not count, so that a number may have as many of them as it likes and costs no more.
 */
final class Digits {
  static final long NONE = Long.MIN_VALUE;
  private static final long FAR = 1L << 40;

  private final byte[] text;
  private final boolean isNegative;
  /** The first digit that is not 0, and behind the last; a point may be between them. */
  private int first = -1;
  private int last = -1;
  private int count;
  /** The number is the digits times ten to this. */
  private long exponent;

  Digits(byte[] text, int from, int to) {
    this.text = text;
    isNegative = text[from] == '-';
    int i = isNegative ? from + 1 : from;
    int behindPoint = 0;
    int noughts = 0;
    boolean isPointPassed = false;
    for (; i < to && text[i] != 'e' && text[i] != 'E'; i++) {
      if (text[i] == '.') {
        isPointPassed = true;
        continue;
      }
      behindPoint += isPointPassed ? 1 : 0;
      if (text[i] != '0') {
        first = first < 0 ? i : first;
        last = i + 1;
        count += noughts + 1;
        noughts = 0;
      } else if (first >= 0) {
        noughts++;
      }
    }
    exponent = (i < to ? exponent(text, i + 1, to) : 0) - behindPoint + noughts;
  }

  private static long exponent(byte[] text, int from, int to) {
    boolean isNegative = text[from] == '-';
    long exponent = 0;
    for (int i = isNegative || text[from] == '+' ? from + 1 : from; i < to; i++) {
      exponent = Math.min(exponent * 10 + text[i] - '0', FAR);
    }
    return isNegative ? -exponent : exponent;
  }

  /** The number times ten to the scale; null where that is not whole or has more digits than the precision. */
  BigInteger unscaled(int scale, int precision) {
    if (first < 0) {
      return BigInteger.ZERO;
    }
    long shift = exponent + scale;
    if (shift < 0 || count + shift > precision) {
      return null;
    }
    String digits = new String(text, first, last - first, StandardCharsets.ISO_8859_1).replace(".", "");
    BigInteger number = new BigInteger(digits).multiply(BigInteger.TEN.pow((int) shift));
    return isNegative ? number.negate() : number;
  }

  /** Like {@link #unscaled}, for at most 18 digits; {@link #NONE} for null. */
  long unscaledLong(int scale, int precision) {
    if (first < 0) {
      return 0;
    }
    long shift = exponent + scale;
    if (shift < 0 || count + shift > precision) {
      return NONE;
    }
    long number = 0;
    for (int i = first; i < last; i++) {
      if (text[i] != '.') {
        number = number * 10 + text[i] - '0';
      }
    }
    for (; shift > 0; shift--) {
      number *= 10;
    }
    return isNegative ? -number : number;
  }
}
