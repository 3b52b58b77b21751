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

  /** Fills cells from the object that is next. */
  void object(Type type, Cells cells) {
    budget.spend(type.fields.length);
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
        field(type.fields[place], cells, place);
        likely = place + 1;
      }
    }
  }

  /** Fills them likewise; but if the field `root` is an object, returns those of that, else null. */
  ObjectCells objectOr(Type type, Cells cells, byte[] root) {
    ObjectCells inner = null;
    String unknownInside = null;
    for (boolean more = in.opens('}'); more; more = in.more('}')) {
      in.name();
      boolean isRoot = Arrays.equals(root, 0, root.length, in.text, in.from, in.to);
      int place = in.isHalf || isRoot ? -1 : type.names.place(in.text, in.from, in.to);
      if (isRoot && in.next() == '{') {
        inner = new ObjectCells(type, 0);
        unknownField = null;
        object(type, inner);
        unknownInside = unknownField;
      } else if (isRoot) {
        inner = null;
        in.skip();
      } else if (place < 0) {
        unknown();
      } else {
        field(type.fields[place], cells, place);
      }
    }
    unknownField = inner == null ? unknownField : unknownInside;
    return inner;
  }

  private void field(Field field, Cells cells, int place) {
    try {
      value(field.type, cells, place);
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

  /** Puts the value that is next; null for JSON's null. */
  void value(Type type, Cells cells, int place) {
    int first = in.next();
    if (first == 'n') {
      in.word("null");
      cells.put(place, null);
      return;
    }
    switch (type.kind) {
      case STRING -> string(type, first, cells, place);
      case STRUCT -> cells.put(place, first == '{' ? struct(type) : misfit(type));
      case ARRAY -> cells.put(place, first == '[' ? list(type) : misfit(type));
      case MAP -> cells.put(place, first == '{' ? map(type) : misfit(type));
      case BOOLEAN -> cells.putNumber(place, truth(type, first) ? 1 : 0);
      case BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ -> {
        if (type.format == Type.Format.PLAIN) {
          ofText(type, first, cells, place);
        } else {
          ofNumber(type, first, cells, place);
        }
      }
      default -> {
        if (first == '"' && type.format == Type.Format.BASE64) {
          ofText(type, first, cells, place);
        } else {
          ofNumber(type, first, cells, place);
        }
      }
    }
  }

  private void string(Type type, int first, Cells cells, int place) {
    int start = in.at;
    if (first != '"') {
      in.skip();
      cells.putText(place, bytes, start, in.at);
      return;
    }
    in.string();
    if (in.isHalf) {
      throw misfitted(type, start);
    }
    cells.putText(place, in.text, in.from, in.to);
  }

  private Object struct(Type type) {
    ObjectCells cells = new ObjectCells(type, 0);
    String before = unknownField;
    object(type, cells);
    unknownField = before;
    return new GenericInternalRow(cells.values);
  }

  private Object list(Type type) {
    List<Object> items = new ArrayList<>();
    ObjectCells item = new ObjectCells(type, 0);
    for (boolean more = in.opens(']'); more; more = in.more(']')) {
      try {
        value(type.element, item, 0);
        items.add(item.values[0]);
      } catch (BadMessage bad) {
        throw bad.within(items.size());
      }
    }
    return new GenericArrayData(items.toArray());
  }

  private Object map(Type type) {
    MapBuilder map = new MapBuilder();
    ObjectCells item = new ObjectCells(type, 0);
    for (boolean more = in.opens('}'); more; more = in.more('}')) {
      in.next();
      int start = in.at;
      in.name();
      if (in.isHalf) {
        throw misfitted(type, start);
      }
      UTF8String key = UTF8String.fromBytes(in.text, in.from, in.to - in.from);
      try {
        value(type.element, item, 0);
        map.put(key, item.values[0]);
      } catch (BadMessage bad) {
        throw bad.within(key.toString());
      }
    }
    return map.build();
  }

  private boolean truth(Type type, int first) {
    if (first != 't' && first != 'f') {
      misfit(type);
    }
    in.word(first == 't' ? "true" : "false");
    return first == 't';
  }

  private void ofText(Type type, int first, Cells cells, int place) {
    int start = in.at;
    if (first != '"') {
      misfit(type);
    }
    in.string();
    if (!TextValues.put(type, in, cells, place)) {
      throw misfitted(type, start);
    }
  }

  private void ofNumber(Type type, int first, Cells cells, int place) {
    if (first != '-' && (first < '0' || first > '9')) {
      misfit(type);
    }
    int start = in.at;
    in.number();
    if (!Numbers.put(type, in, cells, place)) {
      throw misfitted(type, start);
    }
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
