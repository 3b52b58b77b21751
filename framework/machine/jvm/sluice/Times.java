package sluice;

/**
 * Dates and times of the years 1 to 9999, as Spark counts them: days, and microseconds since 1970.
 *
 * <p>Text is ISO 8601: `2026-01-05`, `2026-01-05T10:00:00.123456+01:00`. The seconds may be left out, a space may stand for the T, and
 * what is finer than a microsecond is cut off. A zone is an offset or Z: names of zones say several times in autumn and none in spring.
 */
final class Times {
  static final int NO_DAY = Integer.MIN_VALUE;
  static final long NO_TIME = Long.MIN_VALUE;

  private static final long DAY_MICROS = 86_400_000_000L;
  private static final long DAY_MILLIS = 86_400_000L;
  private static final int FIRST_DAY = -719_162;
  private static final int LAST_DAY = 2_932_896;
  private static final int LARGEST_OFFSET = 18 * 3600;

  private Times() {}

  /** The column's value of a number that counts days, milliseconds or microseconds; null beyond the years 1 to 9999. */
  static Object ofNumber(Type type, long number) {
    switch (type.format) {
      case EPOCH_DAYS:
        return day(number);
      case EPOCH_MILLIS:
        return millis(number);
      case EPOCH_MICROS:
        return micros(number);
      default:
        return null;
    }
  }

  static Integer day(long number) {
    return number < FIRST_DAY || number > LAST_DAY ? null : (Integer) (int) number;
  }

  static Long millis(long number) {
    return number < FIRST_DAY * DAY_MILLIS || number >= (LAST_DAY + 1) * DAY_MILLIS ? null : (Long) (number * 1000);
  }

  static Long micros(long number) {
    return number < FIRST_DAY * DAY_MICROS || number >= (LAST_DAY + 1) * DAY_MICROS ? null : (Long) number;
  }

  static int date(byte[] b, int from, int to) {
    if (to - from != 10 || b[from + 4] != '-' || b[from + 7] != '-') {
      return NO_DAY;
    }
    int high = two(b, from, to);
    int low = two(b, from + 2, to);
    int month = two(b, from + 5, to);
    int day = two(b, from + 8, to);
    int year = high * 100 + low;
    if (high < 0 || low < 0 || year < 1 || month < 1 || month > 12 || day < 1 || day > lastDay(year, month)) {
      return NO_DAY;
    }
    return days(year, month, day);
  }

  /** {@link #NO_TIME} where it is none. Without a zone it is UTC; one that has no zone in its type takes no zone. */
  static long timestamp(byte[] b, int from, int to, boolean isZoned) {
    if (to - from < 16 || b[from + 10] != 'T' && b[from + 10] != ' ' || b[from + 13] != ':') {
      return NO_TIME;
    }
    int day = date(b, from, from + 10);
    int hour = two(b, from + 11, to);
    int minute = two(b, from + 14, to);
    int second = 0;
    long micros = 0;
    int i = from + 16;
    if (i < to && b[i] == ':') {
      second = two(b, i + 1, to);
      i += 3;
      if (i < to && b[i] == '.') {
        int first = ++i;
        for (long unit = 100_000; i < to && b[i] >= '0' && b[i] <= '9'; i++, unit /= 10) {
          micros += unit * (b[i] - '0');
        }
        if (i == first) {
          return NO_TIME;
        }
      }
    }
    if (day == NO_DAY || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) {
      return NO_TIME;
    }
    int offset = i >= to ? 0 : isZoned ? offset(b, i, to) : Integer.MAX_VALUE;
    if (offset == Integer.MAX_VALUE) {
      return NO_TIME;
    }
    Long time = micros(day * DAY_MICROS + (hour * 3600L + minute * 60 + second - offset) * 1_000_000 + micros);
    return time == null ? NO_TIME : time;
  }

  /** In seconds, of `Z`, `+01`, `+0100`, `+01:00` or `+01:00:00`, before which a space may stand; MAX_VALUE where it is none. */
  private static int offset(byte[] b, int from, int to) {
    int at = b[from] == ' ' ? from + 1 : from;
    if (to - at == 1 && b[at] == 'Z') {
      return 0;
    }
    if (at >= to || b[at] != '+' && b[at] != '-') {
      return Integer.MAX_VALUE;
    }
    int hours = two(b, at + 1, to);
    int i = at + 3;
    boolean hasColon = i < to && b[i] == ':';
    int minutes = i == to ? 0 : two(b, hasColon ? i + 1 : i, to);
    i = i == to ? i : hasColon ? i + 3 : i + 2;
    boolean hasSeconds = hasColon && i < to && b[i] == ':';
    int seconds = hasSeconds ? two(b, i + 1, to) : 0;
    i = hasSeconds ? i + 3 : i;
    int offset = (hours * 60 + minutes) * 60 + seconds;
    if (i != to || hours < 0 || minutes < 0 || minutes > 59 || seconds < 0 || seconds > 59 || offset > LARGEST_OFFSET) {
      return Integer.MAX_VALUE;
    }
    return b[at] == '-' ? -offset : offset;
  }

  /** The number of two digits; -1 where they are none. */
  private static int two(byte[] b, int at, int to) {
    if (to - at < 2) {
      return -1;
    }
    int tens = b[at] - '0';
    int ones = b[at + 1] - '0';
    return tens < 0 || tens > 9 || ones < 0 || ones > 9 ? -1 : tens * 10 + ones;
  }

  private static int lastDay(int year, int month) {
    if (month == 2) {
      return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
    }
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
  }

  /** Days since 1970 of a date, by the years of 400 and the months counted from March. */
  static int days(int year, int month, int day) {
    int y = month <= 2 ? year - 1 : year;
    int ofEra = y % 400;
    int ofYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return y / 400 * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468;
  }
}
