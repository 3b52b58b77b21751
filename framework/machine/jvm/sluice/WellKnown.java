package sluice;

import java.math.BigInteger;
import java.util.Locale;
import org.apache.spark.unsafe.types.UTF8String;

/** Google's and Confluent's message types that are a single value in a table: times, decimals, wrappers and JSON. */
final class WellKnown {
  private static final long BILLION = 1_000_000_000L;
  private static final long LONGEST_DURATION = 315_576_000_000L;
  private static final int LONGEST_DECIMAL = 64;

  private WellKnown() {}

  static ProtobufColumn column(ProtobufType type, Type column) {
    switch (type.name) {
      case "google.protobuf.Timestamp":
        return read -> timestamp(number(type, read, 1), number(type, read, 2), column);
      case "google.protobuf.Duration":
        return read -> duration(number(type, read, 1), number(type, read, 2), column);
      case "google.type.Date":
        return read -> date(number(type, read, 1), number(type, read, 2), number(type, read, 3), column);
      case "google.type.TimeOfDay":
        return read -> timeOfDay(number(type, read, 1), number(type, read, 2), number(type, read, 3), number(type, read, 4), column);
      case "confluent.type.Decimal":
        return read -> decimal((byte[]) value(type, read, 1), number(type, read, 3), column);
      case "google.protobuf.Struct":
      case "google.protobuf.Value":
      case "google.protobuf.ListValue":
        return read -> UTF8String.fromString(ProtobufJson.text(type, (Object[]) read));
      default:
        ProtobufType.Member inner = type.members.get(0);
        ProtobufColumn scalar = Protobuf.scalar(inner.kind, column);
        return read -> scalar.of(value(type, read, inner.number));
    }
  }

  /** The value of the field with this number, or its default. */
  static Object value(ProtobufType type, Object read, int number) {
    ProtobufType.Member member = type.member(number);
    Object value = ((Object[]) read)[member.place];
    return value == null ? member.absent : value;
  }

  private static long number(ProtobufType type, Object read, int number) {
    return ((Number) value(type, read, number)).longValue();
  }

  private static long timestamp(long seconds, long nanos, Type column) {
    // Before the multiplication, which would overflow.
    Long second = nanos < 0 || nanos >= BILLION || Math.abs(seconds / 1000) > BILLION ? null : Times.micros(seconds * 1_000_000);
    if (second == null) {
      throw BadMessage.misfit(column, seconds + " seconds and " + nanos + " nanoseconds");
    }
    return second + nanos / 1000;
  }

  /** In microseconds; what is finer is cut off towards zero. */
  private static long duration(long seconds, long nanos, Type column) {
    boolean isMixed = seconds > 0 && nanos < 0 || seconds < 0 && nanos > 0;
    if (Math.abs(seconds / 2) > LONGEST_DURATION / 2 || Math.abs(seconds) > LONGEST_DURATION || Math.abs(nanos) >= BILLION || isMixed) {
      throw BadMessage.misfit(column, seconds + " seconds and " + nanos + " nanoseconds");
    }
    return seconds * 1_000_000 + nanos / 1000;
  }

  private static int date(long year, long month, long day, Type column) {
    boolean fits = year >= 1 && year <= 9999 && month >= 1 && month <= 12 && day >= 1 && day <= 31;
    String text = String.format(Locale.ROOT, "%04d-%02d-%02d", year, month, day);
    int days = fits ? Times.date(text.getBytes(java.nio.charset.StandardCharsets.US_ASCII), 0, 10) : Times.NO_DAY;
    if (days == Times.NO_DAY) {
      throw BadMessage.misfit(column, text);
    }
    return days;
  }

  private static UTF8String timeOfDay(long hours, long minutes, long seconds, long nanos, Type column) {
    boolean fits = hours >= 0 && hours <= 24 && minutes >= 0 && minutes < 60 && seconds >= 0 && seconds <= 60 && nanos >= 0 && nanos < BILLION;
    boolean isBehindTheEnd = hours == 24 && (minutes != 0 || seconds != 0 || nanos != 0);
    String text = String.format(Locale.ROOT, "%02d:%02d:%02d", hours, minutes, seconds);
    if (!fits || isBehindTheEnd) {
      throw BadMessage.misfit(column, text);
    }
    return UTF8String.fromString(nanos == 0 ? text : text + String.format(Locale.ROOT, ".%09d", nanos).replaceAll("0+$", ""));
  }

  private static Object decimal(byte[] bytes, long scale, Type column) {
    BigInteger unscaled = bytes.length == 0 ? BigInteger.ZERO : new BigInteger(bytes);
    Object value = bytes.length > LONGEST_DECIMAL ? null : Numbers.decimal(unscaled, (int) scale, column);
    if (value == null) {
      throw BadMessage.misfit(column, "a decimal of " + bytes.length + " bytes with the scale " + scale);
    }
    return value;
  }
}
