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

  /** Puts the value of the JSON number that was read last. Returns whether the column can hold it. */
  static boolean put(Type type, JsonText in, Cells cells, int place) {
    switch (type.kind) {
      case DECIMAL:
        return decimal(in, type, cells, place);
      case DOUBLE:
        double wide = real(in.text, in.from, in.to);
        cells.putNumber(place, Double.doubleToRawLongBits(wide));
        return !Double.isInfinite(wide);
      case FLOAT:
        float narrow = Float.parseFloat(new String(in.text, in.from, in.to - in.from, StandardCharsets.ISO_8859_1));
        cells.putNumber(place, Float.floatToRawIntBits(narrow));
        return !Float.isInfinite(narrow);
      default:
        return in.isWhole ? whole(type, in, cells, place) : type.format == Type.Format.INTEGRAL && integral(type, in, cells, place);
    }
  }

  /** Puts a whole number as the column's type. Returns whether that can hold it. */
  private static boolean put(Type type, long number, Cells cells, int place) {
    switch (type.kind) {
      case BIGINT:
        cells.putNumber(place, number);
        return true;
      case INT:
        cells.putNumber(place, number);
        return number == (int) number;
      case SMALLINT:
        cells.putNumber(place, number);
        return number == (short) number;
      case TINYINT:
        cells.putNumber(place, number);
        return number == (byte) number;
      default:
        Object time = Times.ofNumber(type, number);
        cells.put(place, time);
        return time != null;
    }
  }

  private static boolean whole(Type type, JsonText in, Cells cells, int place) {
    byte[] text = in.text;
    boolean isNegative = text[in.from] == '-';
    int i = isNegative ? in.from + 1 : in.from;
    if (in.to - i > 19) {
      return false;
    }
    long number = 0; // below 0, since the lowest long has no counterpart above
    for (; i < in.to; i++) {
      int digit = text[i] - '0';
      if (number < (Long.MIN_VALUE + digit) / 10) {
        return false;
      }
      number = number * 10 - digit;
    }
    return (isNegative || number != Long.MIN_VALUE) && put(type, isNegative ? number : -number, cells, place);
  }

  /** A whole number that is written with a point or an exponent. */
  private static boolean integral(Type type, JsonText in, Cells cells, int place) {
    BigInteger unscaled = new Digits(in.text, in.from, in.to).unscaled(0, 19);
    return unscaled != null && unscaled.bitLength() <= 63 && put(type, unscaled.longValue(), cells, place);
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

  private static boolean decimal(JsonText in, Type type, Cells cells, int place) {
    Digits digits = new Digits(in.text, in.from, in.to);
    if (type.precision <= LONG_DIGITS) {
      long unscaled = digits.unscaledLong(type.scale, type.precision);
      cells.putNumber(place, unscaled);
      return unscaled != Digits.NONE;
    }
    BigInteger unscaled = digits.unscaled(type.scale, type.precision);
    cells.put(place, unscaled == null ? null : spark(unscaled, type));
    return unscaled != null;
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
