package sluice;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Reads JSON values as the types of their columns: each only from its own JSON type, and only where nothing of it is lost.
 *
 * <p>A `string` takes every value as it stands in the message. Of equal names the last counts.
 */
final class JsonFields {
  private final JsonText in;
  private final byte[] bytes;
  private final Budget budget = new Budget();
  /** The first name at the top level that is no column's. */
  String unknownField;

  JsonFields(JsonText in) {
    this.in = in;
    this.bytes = in.bytes;
  }

  /** Fills a row from the object that is next. */
  void object(Type type, Object[] row) {
    budget.spend(row.length);
    int likely = 0;
    for (boolean more = in.opens('}'); more; more = in.more('}')) {
      int place = likely;
      if (!type.names.passed(likely, in)) {
        in.name();
        place = in.isHalf ? -1 : type.names.place(in.text, in.from, in.to);
      }
      if (place < 0) {
        unknown();
      } else {
        row[place] = field(type.fields[place]);
        likely = place + 1;
      }
    }
  }

  /** Fills the row likewise; but if the field `root` is an object, returns the row of that, else null. */
  Object[] objectOr(Type type, Object[] row, byte[] root) {
    Object[] inner = null;
    String unknownInside = null;
    for (boolean more = in.opens('}'); more; more = in.more('}')) {
      in.name();
      boolean isRoot = Arrays.equals(root, 0, root.length, in.text, in.from, in.to);
      int place = in.isHalf || isRoot ? -1 : type.names.place(in.text, in.from, in.to);
      if (isRoot && in.next() == '{') {
        inner = new Object[type.fields.length];
        unknownField = null;
        object(type, inner);
        unknownInside = unknownField;
      } else if (isRoot) {
        inner = null;
        in.skip();
      } else if (place < 0) {
        unknown();
      } else {
        row[place] = field(type.fields[place]);
      }
    }
    unknownField = inner == null ? unknownField : unknownInside;
    return inner;
  }

  private Object field(Field field) {
    try {
      return value(field.type);
    } catch (BadMessage bad) {
      throw bad.within(field);
    }
  }

  private void unknown() {
    if (unknownField == null) {
      unknownField = new String(in.text, in.from, in.to - in.from, StandardCharsets.UTF_8);
    }
    in.skip();
  }

  /** The value that is next; null for JSON's null. */
  Object value(Type type) {
    int first = in.next();
    if (first == 'n') {
      in.word("null");
      return null;
    }
    switch (type.kind) {
      case STRING:
        return string(type, first);
      case STRUCT:
        return first == '{' ? struct(type) : misfit(type);
      case ARRAY:
        return first == '[' ? list(type.element) : misfit(type);
      case MAP:
        return first == '{' ? map(type) : misfit(type);
      case BOOLEAN:
        return bool(type, first);
      case BINARY:
      case DATE:
      case TIMESTAMP:
      case TIMESTAMP_NTZ:
        return type.format == Type.Format.PLAIN ? ofText(type, first) : ofNumber(type, first);
      default:
        return first == '"' && type.format == Type.Format.BASE64 ? ofText(type, first) : ofNumber(type, first);
    }
  }

  private UTF8String string(Type type, int first) {
    int start = in.at;
    if (first != '"') {
      in.skip();
      return Json.text(bytes, start, in.at);
    }
    in.string();
    if (in.isHalf) {
      throw misfitted(type, start);
    }
    return Json.text(in.text, in.from, in.to);
  }

  private Object struct(Type type) {
    Object[] row = new Object[type.fields.length];
    String before = unknownField;
    object(type, row);
    unknownField = before;
    return new GenericInternalRow(row);
  }

  private Object list(Type element) {
    List<Object> items = new ArrayList<>();
    for (boolean more = in.opens(']'); more; more = in.more(']')) {
      try {
        items.add(value(element));
      } catch (BadMessage bad) {
        throw bad.within(items.size());
      }
    }
    return new GenericArrayData(items.toArray());
  }

  private Object map(Type type) {
    MapBuilder map = new MapBuilder();
    for (boolean more = in.opens('}'); more; more = in.more('}')) {
      in.next();
      int start = in.at;
      in.name();
      if (in.isHalf) {
        throw misfitted(type, start);
      }
      UTF8String key = Json.text(in.text, in.from, in.to);
      try {
        map.put(key, value(type.element));
      } catch (BadMessage bad) {
        throw bad.within(key.toString());
      }
    }
    return map.build();
  }

  private Object bool(Type type, int first) {
    if (first == 't') {
      in.word("true");
      return true;
    }
    if (first != 'f') {
      return misfit(type);
    }
    in.word("false");
    return false;
  }

  private Object ofText(Type type, int first) {
    int start = in.at;
    if (first != '"') {
      return misfit(type);
    }
    in.string();
    Object value = TextValues.of(type, in.text, in.from, in.to);
    if (value == null) {
      throw misfitted(type, start);
    }
    return value;
  }

  private Object ofNumber(Type type, int first) {
    if (first != '-' && (first < '0' || first > '9')) {
      return misfit(type);
    }
    int start = in.at;
    in.number();
    Object value = Numbers.of(type, bytes, in.from, in.to, in.isWhole);
    if (value == null) {
      throw misfitted(type, start);
    }
    return value;
  }

  /** The value that is next is of another JSON type than its column takes. */
  private Object misfit(Type type) {
    int start = in.at;
    in.skip();
    throw misfitted(type, start);
  }

  private BadMessage misfitted(Type type, int start) {
    // Only what is shown is made a string: a value can have megabytes.
    int length = Math.min(in.at - start, 256);
    return BadMessage.misfit(type, new String(bytes, start, length, StandardCharsets.UTF_8));
  }
}
