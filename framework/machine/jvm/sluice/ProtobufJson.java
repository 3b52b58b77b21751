package sluice;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.unsafe.types.UTF8String;

/** The text of Google's Struct, Value and ListValue: JSON without spaces, in the order of the message. */
final class ProtobufJson {
  private static final double EXACT = 1L << 53;

  private ProtobufJson() {}

  static String text(ProtobufType type, Object[] values) {
    StringBuilder out = new StringBuilder();
    write(type, values, out);
    return out.toString();
  }

  private static void write(ProtobufType type, Object[] values, StringBuilder out) {
    if (type.name.endsWith("Struct")) {
      writeObject(type.member(1).message, (List<?>) values[0], out);
    } else if (type.name.endsWith("ListValue")) {
      out.append('[');
      List<?> items = values[0] == null ? List.of() : (List<?>) values[0];
      for (int i = 0; i < items.size(); i++) {
        out.append(i == 0 ? "" : ",");
        write(type.member(1).message, (Object[]) items.get(i), out);
      }
      out.append(']');
    } else {
      writeValue(type, values, out);
    }
  }

  private static void writeObject(ProtobufType entry, List<?> entries, StringBuilder out) {
    Map<UTF8String, Object[]> last = new LinkedHashMap<>();
    for (Object each : entries == null ? List.of() : entries) {
      Object[] pair = (Object[]) each;
      last.put((UTF8String) WellKnown.value(entry, pair, 1), (Object[]) pair[entry.member(2).place]);
    }
    char before = '{';
    for (Map.Entry<UTF8String, Object[]> each : last.entrySet()) {
      out.append(before);
      quote(each.getKey().toString(), out);
      out.append(':');
      if (each.getValue() == null) {
        out.append("null");
      } else {
        write(entry.member(2).message, each.getValue(), out);
      }
      before = ',';
    }
    out.append(last.isEmpty() ? "{}" : "}");
  }

  /** One of `null_value`, `number_value`, `string_value`, `bool_value`, `struct_value` and `list_value`. */
  private static void writeValue(ProtobufType type, Object[] values, StringBuilder out) {
    for (ProtobufType.Member member : type.members) {
      Object value = values[member.place];
      if (value == null || member.kind == ProtobufType.Kind.ENUM) {
        continue;
      }
      if (value instanceof Double) {
        out.append(number((Double) value));
      } else if (value instanceof UTF8String) {
        quote(value.toString(), out);
      } else if (member.message != null) {
        write(member.message, (Object[]) value, out);
      } else {
        out.append(value);
      }
      return;
    }
    out.append("null");
  }

  /** Whole numbers that a double holds exactly without a point; others with the fewest digits that are the same number. */
  static String number(double number) {
    if (Double.isNaN(number) || Double.isInfinite(number)) {
      throw BadMessage.undecodable("JSON has no number " + number);
    }
    if (number == Math.rint(number) && Math.abs(number) < EXACT) {
      return Long.toString((long) number);
    }
    BigDecimal digits = shortest(number);
    int exponent = digits.precision() - digits.scale() - 1;
    if (exponent >= -4 && exponent < 16) {
      return digits.scale() > 0 ? digits.toPlainString() : digits.toPlainString() + ".0";
    }
    String text = digits.unscaledValue().abs().toString();
    String fraction = text.length() > 1 ? "." + text.substring(1) : "";
    String sign = number < 0 ? "-" : "";
    return sign + text.charAt(0) + fraction + String.format(Locale.ROOT, "e%s%02d", exponent < 0 ? "-" : "+", Math.abs(exponent));
  }

  private static BigDecimal shortest(double number) {
    BigDecimal exact = new BigDecimal(number);
    int first = Math.abs(number) < Double.MIN_NORMAL ? 1 : 15; // 15 digits are kept by every double that has as many
    for (int precision = first; precision < 17; precision++) {
      // Beside a power of two the nearest text can be another number, and the next one not.
      for (RoundingMode mode : new RoundingMode[] {RoundingMode.HALF_EVEN, RoundingMode.CEILING, RoundingMode.FLOOR}) {
        BigDecimal rounded = exact.round(new MathContext(precision, mode));
        if (rounded.doubleValue() == number) {
          return rounded.stripTrailingZeros();
        }
      }
    }
    return exact.round(new MathContext(17, RoundingMode.HALF_EVEN)).stripTrailingZeros();
  }

  static void quote(String text, StringBuilder out) {
    out.append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      int place = "\"\\\b\f\n\r\t".indexOf(c);
      if (place >= 0) {
        out.append('\\').append("\"\\bfnrt".charAt(place));
      } else if (c < ' ') {
        out.append(String.format(Locale.ROOT, "\\u%04x", (int) c));
      } else {
        out.append(c);
      }
    }
    out.append('"');
  }
}
