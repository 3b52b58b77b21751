package sluice;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
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
        return column.kind == Type.Kind.BOOLEAN ? (in, cells, place) -> cells.putNumber(place, truth(in)) : null;
      case "int":
      case "long":
        return number(type, column);
      case "float":
      case "double":
        return real(type.is("float"), column);
      case "string":
        return column.kind == Type.Kind.STRING ? (in, cells, place) -> in.text(in.zigzag(), cells, place) : null;
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

  private static int truth(BinaryInput in) {
    int value = in.oneByte();
    if (value != 0 && value != 1) {
      throw BadMessage.undecodable("a boolean is neither 0 nor 1");
    }
    return value;
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
        return isInt && type.logical.isEmpty() ? (in, cells, place) -> cells.putNumber(place, number(in, true)) : null;
      case BIGINT:
        return type.logical.isEmpty() ? (in, cells, place) -> cells.putNumber(place, number(in, isInt)) : null;
      case FLOAT:
        return isInt && type.logical.isEmpty() ? (in, cells, place) -> cells.putNumber(place, exactFloat(number(in, true), column)) : null;
      case DOUBLE:
        return type.logical.isEmpty() ? (in, cells, place) -> cells.putNumber(place, exactDouble(number(in, isInt), column)) : null;
      case DATE:
        boolean isDate = type.logical.equals("date") || column.format == Type.Format.EPOCH_DAYS;
        return isDate ? (in, cells, place) -> cells.put(place, fitting(Times.day(number(in, isInt)), column)) : null;
      case TIMESTAMP:
      case TIMESTAMP_NTZ:
        String zone = column.kind == Type.Kind.TIMESTAMP ? "" : "local-";
        if (type.logical.equals(zone + "timestamp-millis") || column.format == Type.Format.EPOCH_MILLIS) {
          return (in, cells, place) -> cells.put(place, fitting(Times.millis(number(in, isInt)), column));
        }
        boolean isMicros = type.logical.equals(zone + "timestamp-micros") || column.format == Type.Format.EPOCH_MICROS;
        return isMicros ? (in, cells, place) -> cells.put(place, fitting(Times.micros(number(in, isInt)), column)) : null;
      default:
        return null;
    }
  }

  private static long exactFloat(long number, Type column) {
    if ((long) (float) number != number) {
      throw unfit(column);
    }
    return Float.floatToRawIntBits(number);
  }

  private static long exactDouble(long number, Type column) {
    if ((long) (double) number != number) {
      throw unfit(column);
    }
    return Double.doubleToRawLongBits(number);
  }

  private static Object fitting(Object value, Type column) {
    if (value == null) {
      throw unfit(column);
    }
    return value;
  }

  private static BadMessage unfit(Type column) {
    return BadMessage.misfit(column, "a value that it cannot hold");
  }

  private static AvroReader real(boolean isFloat, Type column) {
    if (column.kind == Type.Kind.FLOAT && isFloat) {
      return (in, cells, place) -> cells.putNumber(place, in.fixed32());
    }
    if (column.kind != Type.Kind.DOUBLE) {
      return null;
    }
    return isFloat
        ? (in, cells, place) -> cells.putNumber(place, Double.doubleToRawLongBits(Float.intBitsToFloat(in.fixed32())))
        : (in, cells, place) -> cells.putNumber(place, in.fixed64());
  }

  private static AvroReader symbols(AvroType type) {
    byte[][] symbols = type.symbols.stream().map(each -> each.getBytes(StandardCharsets.UTF_8)).toArray(byte[][]::new);
    return (in, cells, place) -> {
      byte[] symbol = symbols[index(in, symbols.length, "symbol")];
      cells.putText(place, symbol, 0, symbol.length);
    };
  }

  private static AvroReader decimal(AvroType type, Type column) {
    if (column.kind != Type.Kind.DECIMAL) {
      return null;
    }
    return (in, cells, place) -> {
      BigInteger unscaled = in.bigEndian(type.is("fixed") ? type.size : in.zigzag());
      cells.put(place, fitting(Numbers.decimal(unscaled, type.scale, column), column));
    };
  }

  private static AvroReader bytes(AvroType type, Type column) {
    if (type.is("fixed") && type.logical.equals("uuid") && column.kind == Type.Kind.STRING) {
      return (in, cells, place) -> {
        ByteBuffer bytes = ByteBuffer.wrap(in.copy(type.size));
        cells.put(place, UTF8String.fromString(new UUID(bytes.getLong(), bytes.getLong()).toString()));
      };
    }
    if (column.kind != Type.Kind.BINARY) {
      return null;
    }
    return (in, cells, place) -> cells.put(place, in.copy(type.is("fixed") ? type.size : in.zigzag()));
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

  static AvroReader array(AvroReader element, Type column) {
    return (in, cells, place) -> {
      List<Object> items = new ArrayList<>();
      ObjectCells item = new ObjectCells(column, 0);
      for (long count = block(in); count > 0; count = block(in)) {
        for (; count > 0; count--) {
          try {
            element.read(in, item, 0);
            items.add(item.values[0]);
          } catch (BadMessage bad) {
            throw bad.within(items.size());
          }
        }
      }
      cells.put(place, new GenericArrayData(items.toArray()));
    };
  }

  static AvroReader map(AvroReader value, Type column) {
    return (in, cells, place) -> {
      MapBuilder map = new MapBuilder();
      ObjectCells item = new ObjectCells(column, 0);
      for (long count = block(in); count > 0; count = block(in)) {
        for (; count > 0; count--) {
          UTF8String key = in.text(in.zigzag());
          try {
            value.read(in, item, 0);
            map.put(key, item.values[0]);
          } catch (BadMessage bad) {
            throw bad.within(key.toString());
          }
        }
      }
      cells.put(place, map.build());
    };
  }

  /** Passes over a value, and checks what must be right to find its end. It puts nothing. */
  static AvroReader skip(AvroType type, AvroReader[] members) {
    switch (type.kind) {
      case "null":
        return (in, cells, place) -> {};
      case "boolean":
        return (in, cells, place) -> truth(in);
      case "int":
      case "long":
        return (in, cells, place) -> number(in, type.is("int"));
      case "float":
        return (in, cells, place) -> in.take(4);
      case "double":
        return (in, cells, place) -> in.take(8);
      case "fixed":
        return (in, cells, place) -> in.take(type.size);
      case "enum":
        return (in, cells, place) -> index(in, type.symbols.size(), "symbol");
      case "union":
        return (in, cells, place) -> members[index(in, members.length, "type")].read(in, cells, place);
      case "record":
        return (in, cells, place) -> {
          for (AvroReader member : members) {
            member.read(in, cells, place);
          }
        };
      case "array":
      case "map":
        return (in, cells, place) -> skipItems(in, type.is("map"), members[0]);
      default:
        return (in, cells, place) -> in.take(in.zigzag());
    }
  }

  private static void skipItems(BinaryInput in, boolean isMap, AvroReader item) {
    for (long count = block(in); count > 0; count = block(in)) {
      for (; count > 0; count--) {
        if (isMap) {
          in.take(in.zigzag());
        }
        item.read(in, null, 0);
      }
    }
  }
}
