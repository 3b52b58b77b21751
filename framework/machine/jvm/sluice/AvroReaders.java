package sluice;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/** The readers of Avro's types as columns. A number goes into a wider type, never into a narrower one. */
final class AvroReaders {
  private AvroReaders() {}

  /** The reader of a type that holds no other; null if the column cannot hold it. */
  static AvroReader atom(AvroType type, Type column) {
    switch (type.kind) {
      case "boolean":
        return column.kind == Type.Kind.BOOLEAN ? AvroReaders::bool : null;
      case "int":
      case "long":
        return number(type, column);
      case "float":
      case "double":
        return real(type.is("float"), column);
      case "string":
        return column.kind == Type.Kind.STRING ? in -> in.text(in.zigzag()) : null;
      case "enum":
        return column.kind == Type.Kind.STRING ? symbols(type) : null;
      default:
        return type.logical.equals("decimal") ? decimal(type, column) : bytes(type, column);
    }
  }

  static int index(BinaryInput in, int count, String of) {
    long index = in.zigzag();
    if (index < 0 || index >= count) {
      throw BadMessage.undecodable("there is no " + of + " " + index);
    }
    return (int) index;
  }

  private static Object bool(BinaryInput in) {
    int value = in.oneByte();
    if (value != 0 && value != 1) {
      throw BadMessage.undecodable("a boolean is neither 0 nor 1");
    }
    return value == 1;
  }

  private static long number(BinaryInput in, boolean isInt) {
    long number = in.zigzag();
    if (isInt && number != (int) number) {
      throw BadMessage.undecodable("an int has more than 32 bits");
    }
    return number;
  }

  private static AvroReader number(AvroType type, Type column) {
    boolean isInt = type.is("int");
    switch (column.kind) {
      case INT:
        return isInt && type.logical.isEmpty() ? in -> (int) number(in, true) : null;
      case BIGINT:
        return type.logical.isEmpty() ? in -> number(in, isInt) : null;
      case FLOAT:
        return isInt && type.logical.isEmpty() ? in -> exactFloat(number(in, true), column) : null;
      case DOUBLE:
        return type.logical.isEmpty() ? in -> exactDouble(number(in, isInt), column) : null;
      case DATE:
        boolean isDate = type.logical.equals("date") || column.format == Type.Format.EPOCH_DAYS;
        return isDate ? in -> fitting(Times.day(number(in, isInt)), column) : null;
      case TIMESTAMP:
      case TIMESTAMP_NTZ:
        String zone = column.kind == Type.Kind.TIMESTAMP ? "" : "local-";
        if (type.logical.equals(zone + "timestamp-millis") || column.format == Type.Format.EPOCH_MILLIS) {
          return in -> fitting(Times.millis(number(in, isInt)), column);
        }
        boolean isMicros = type.logical.equals(zone + "timestamp-micros") || column.format == Type.Format.EPOCH_MICROS;
        return isMicros ? in -> fitting(Times.micros(number(in, isInt)), column) : null;
      default:
        return null;
    }
  }

  private static Object exactFloat(long number, Type column) {
    return fitting((long) (float) number == number ? (Object) (float) number : null, column);
  }

  private static Object exactDouble(long number, Type column) {
    return fitting((long) (double) number == number ? (Object) (double) number : null, column);
  }

  private static Object fitting(Object value, Type column) {
    if (value == null) {
      throw BadMessage.misfit(column, "a value that it cannot hold");
    }
    return value;
  }

  private static AvroReader real(boolean isFloat, Type column) {
    if (column.kind == Type.Kind.FLOAT && isFloat) {
      return in -> Float.intBitsToFloat(in.fixed32());
    }
    if (column.kind != Type.Kind.DOUBLE) {
      return null;
    }
    return isFloat ? in -> (double) Float.intBitsToFloat(in.fixed32()) : in -> Double.longBitsToDouble(in.fixed64());
  }

  private static AvroReader symbols(AvroType type) {
    UTF8String[] symbols = type.symbols.stream().map(UTF8String::fromString).toArray(UTF8String[]::new);
    return in -> symbols[index(in, symbols.length, "symbol")];
  }

  private static AvroReader decimal(AvroType type, Type column) {
    if (column.kind != Type.Kind.DECIMAL) {
      return null;
    }
    return in -> {
      BigInteger unscaled = in.bigEndian(type.is("fixed") ? type.size : in.zigzag());
      return fitting(Numbers.decimal(unscaled, type.scale, column), column);
    };
  }

  private static AvroReader bytes(AvroType type, Type column) {
    if (type.is("fixed") && type.logical.equals("uuid") && column.kind == Type.Kind.STRING) {
      return in -> {
        ByteBuffer bytes = ByteBuffer.wrap(in.copy(type.size));
        return UTF8String.fromString(new UUID(bytes.getLong(), bytes.getLong()).toString());
      };
    }
    if (column.kind != Type.Kind.BINARY) {
      return null;
    }
    return type.is("fixed") ? in -> in.copy(type.size) : in -> in.copy(in.zigzag());
  }

  /** How many items the next block has; 0 ends the list. Each takes at least one byte, so that a wrong count ends at once. */
  private static long block(BinaryInput in) {
    long count = in.zigzag();
    if (count < 0) {
      in.zigzag(); // the block's length in bytes, which the items tell, too
      count = -count;
    }
    if (count < 0 || count > in.remaining()) {
      throw BadMessage.undecodable("a list claims more items than there are bytes");
    }
    return count;
  }

  static AvroReader array(AvroReader element) {
    return in -> {
      List<Object> items = new ArrayList<>();
      for (long count = block(in); count > 0; count = block(in)) {
        for (; count > 0; count--) {
          try {
            items.add(element.read(in));
          } catch (BadMessage bad) {
            throw bad.within(items.size());
          }
        }
      }
      return new GenericArrayData(items.toArray());
    };
  }

  static AvroReader map(AvroReader value) {
    return in -> {
      MapBuilder map = new MapBuilder();
      for (long count = block(in); count > 0; count = block(in)) {
        for (; count > 0; count--) {
          UTF8String key = in.text(in.zigzag());
          try {
            map.put(key, value.read(in));
          } catch (BadMessage bad) {
            throw bad.within(key.toString());
          }
        }
      }
      return map.build();
    };
  }

  /** Passes over a value, and checks what must be right to find its end. */
  static AvroReader skip(AvroType type, AvroReader[] members) {
    switch (type.kind) {
      case "null":
        return in -> null;
      case "boolean":
        return AvroReaders::bool;
      case "int":
      case "long":
        return in -> number(in, type.is("int"));
      case "float":
        return in -> in.take(4);
      case "double":
        return in -> in.take(8);
      case "fixed":
        return in -> in.take(type.size);
      case "enum":
        return in -> index(in, type.symbols.size(), "symbol");
      case "union":
        return in -> members[index(in, members.length, "type")].read(in);
      case "record":
        return in -> {
          for (AvroReader member : members) {
            member.read(in);
          }
          return null;
        };
      case "array":
      case "map":
        return in -> skipItems(in, type.is("map"), members[0]);
      default:
        return in -> in.take(in.zigzag());
    }
  }

  private static Object skipItems(BinaryInput in, boolean isMap, AvroReader item) {
    for (long count = block(in); count > 0; count = block(in)) {
      for (; count > 0; count--) {
        if (isMap) {
          in.take(in.zigzag());
        }
        item.read(in);
      }
    }
    return null;
  }
}
