package sluice;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.types.Decimal;

/** Numbers from their text: whole numbers within their range, decimals to the last digit, floats as the nearest one. */
final class Numbers {
  private static final int LONG_DIGITS = 18;
  private static final int MOST_BITS = 512;
  private static final long EXACT = 1L << 53;
  private static final double[] TENS = new double[23];
  private static final BigInteger[] LIMITS = new BigInteger[39];

  static {
    double ten = 1;
    BigInteger limit = BigInteger.ONE;
    for (int n = 0; n < LIMITS.length; n++, ten *= 10, limit = limit.multiply(BigInteger.TEN)) {
      LIMITS[n] = limit;
      if (n < TENS.length) {
        TENS[n] = ten;
      }
    }
  }

  private Numbers() {}

  /** The value of a JSON number; null if the column cannot hold it. */
  static Object of(Type type, byte[] text, int from, int to, boolean isWhole) {
    switch (type.kind) {
      case DECIMAL:
        return decimal(text, from, to, type);
      case DOUBLE:
        double wide = real(text, from, to);
        return Double.isInfinite(wide) ? null : (Object) wide;
      case FLOAT:
        float narrow = Float.parseFloat(new String(text, from, to - from, StandardCharsets.ISO_8859_1));
        return Float.isInfinite(narrow) ? null : (Object) narrow;
      default:
        Long number = isWhole ? whole(text, from, to) : type.format == Type.Format.INTEGRAL ? integral(text, from, to) : null;
        return number == null ? null : of(type, number);
    }
  }

  /** A whole number as the column's type; null if that cannot hold it. */
  static Object of(Type type, long number) {
    switch (type.kind) {
      case BIGINT:
        return number;
      case INT:
        return number == (int) number ? (Object) (int) number : null;
      case SMALLINT:
        return number == (short) number ? (Object) (short) number : null;
      case TINYINT:
        return number == (byte) number ? (Object) (byte) number : null;
      default:
        return Times.ofNumber(type, number);
    }
  }

  private static Long whole(byte[] text, int from, int to) {
    boolean isNegative = text[from] == '-';
    int i = isNegative ? from + 1 : from;
    if (to - i > 19) {
      return null;
    }
    long number = 0; // below 0, since the lowest long has no counterpart above
    for (; i < to; i++) {
      int digit = text[i] - '0';
      if (number < (Long.MIN_VALUE + digit) / 10) {
        return null;
      }
      number = number * 10 - digit;
    }
    return isNegative ? (Long) number : number == Long.MIN_VALUE ? null : (Long) (-number);
  }

  /** A whole number that is written with a point or an exponent. */
  private static Long integral(byte[] text, int from, int to) {
    BigInteger unscaled = new Digits(text, from, to).unscaled(0, 19);
    return unscaled == null || unscaled.bitLength() > 63 ? null : (Long) unscaled.longValue();
  }

  private static double real(byte[] text, int from, int to) {
    if (to - from <= LONG_DIGITS) {
      long digits = 0;
      int point = -1;
      int i = text[from] == '-' ? from + 1 : from;
      for (; i < to && text[i] != 'e' && text[i] != 'E'; i++) {
        if (text[i] == '.') {
          point = i;
        } else {
          digits = digits * 10 + text[i] - '0';
        }
      }
      // Both are exact, so that one division rounds once.
      if (i == to && digits <= EXACT) {
        double number = point < 0 ? digits : digits / TENS[to - point - 1];
        return text[from] == '-' ? -number : number;
      }
    }
    return Double.parseDouble(new String(text, from, to - from, StandardCharsets.ISO_8859_1));
  }

  private static Decimal decimal(byte[] text, int from, int to, Type type) {
    Digits digits = new Digits(text, from, to);
    if (type.precision <= LONG_DIGITS) {
      long unscaled = digits.unscaledLong(type.scale, type.precision);
      return unscaled == Digits.NONE ? null : Decimal.createUnsafe(unscaled, type.precision, type.scale);
    }
    BigInteger unscaled = digits.unscaled(type.scale, type.precision);
    return unscaled == null ? null : spark(unscaled, type);
  }

  /** A decimal with this scale as the column's type; null if a digit would be lost. */
  static Decimal decimal(BigInteger unscaled, int scale, Type type) {
    long shift = unscaled.signum() == 0 ? 0 : (long) type.scale - scale;
    if (unscaled.bitLength() > MOST_BITS || Math.abs(shift) > MOST_BITS) {
      return null; // or else a scale of two billion would be computed
    }
    BigInteger fitted = unscaled;
    if (shift > 0) {
      fitted = unscaled.multiply(BigInteger.TEN.pow((int) shift));
    } else if (shift < 0) {
      BigInteger[] parts = unscaled.divideAndRemainder(BigInteger.TEN.pow((int) -shift));
      if (parts[1].signum() != 0) {
        return null;
      }
      fitted = parts[0];
    }
    return fitted.abs().compareTo(LIMITS[type.precision]) < 0 ? spark(fitted, type) : null;
  }

  private static Decimal spark(BigInteger unscaled, Type type) {
    if (type.precision <= LONG_DIGITS) {
      return Decimal.createUnsafe(unscaled.longValueExact(), type.precision, type.scale);
    }
    return Decimal.apply(new BigDecimal(unscaled, type.scale), type.precision, type.scale);
  }
}
