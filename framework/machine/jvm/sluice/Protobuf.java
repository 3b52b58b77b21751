package sluice;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/** Makes, of one writer's schema and the columns, what reads its messages. Behind the schema's id stands which message type it is. */
final class Protobuf {
  private final Map<List<String>, String> names = new HashMap<>();

  private Protobuf(JsonNode names) {
    for (JsonNode each : names) {
      this.names.put(Paths.of(each.get(0)), each.get(1).asText());
    }
  }

  static MessageReader reader(JsonNode writer, Type columns) {
    ProtobufType type = ProtobufType.first(writer);
    Cell[] cells = new Protobuf(writer.path("names")).cells(type, columns, List.of());
    return (message, from, row) -> {
      BinaryInput in = new BinaryInput(message, from);
      checkIndex(in);
      fill(cells, new ProtobufReader(in).message(type), row);
    };
  }

  /** How many numbers say the place of the message type in its file, then these; a lone 0 is short for the first type. */
  private static void checkIndex(BinaryInput in) {
    int count = in.oneByte();
    if (count != 0 && (count != 2 || in.oneByte() != 0)) {
      throw BadMessage.undecodable("the message is not of the first message type of its schema");
    }
  }

  /** A place of a row, the field that fills it, and what stands there if that is absent. */
  private static final class Cell {
    final int place;
    final Field field;
    final ProtobufType.Member member;
    final ProtobufColumn column;
    final Object absent;

    Cell(int place, Field field, ProtobufType.Member member, ProtobufColumn column) {
      this.place = place;
      this.field = field;
      this.member = member;
      this.column = column;
      this.absent = member.isRepeated || member.isMap ? List.of() : member.absent;
    }
  }

  private static void fill(Cell[] cells, Object[] values, Cells row) {
    for (Cell cell : cells) {
      Object value = values[cell.member.place];
      value = value == null ? cell.absent : value;
      try {
        row.put(cell.place, value == null ? null : cell.column.of(value));
      } catch (BadMessage bad) {
        throw bad.within(cell.field);
      }
    }
  }

  private Cell[] cells(ProtobufType type, Type struct, List<String> path) {
    List<Cell> cells = new ArrayList<>();
    for (ProtobufType.Member member : type.members) {
      List<String> inside = Paths.with(path, member.name);
      String name = names.getOrDefault(inside, member.name);
      for (int place = 0; place < struct.fields.length; place++) {
        Field field = struct.fields[place];
        if (field.source.equals(name)) {
          cells.add(new Cell(place, field, member, column(member, field.type, inside)));
        }
      }
    }
    return cells.toArray(new Cell[0]);
  }

  private ProtobufColumn column(ProtobufType.Member member, Type column, List<String> path) {
    if (member.isMap && column.kind == Type.Kind.MAP) {
      return map(member.message, column, path);
    }
    if (member.isRepeated && column.kind == Type.Kind.ARRAY) {
      ProtobufColumn item = value(member, column.element, path);
      return read -> {
        List<?> items = (List<?>) read;
        Object[] values = new Object[items.size()];
        for (int i = 0; i < values.length; i++) {
          values[i] = item.of(items.get(i));
        }
        return new GenericArrayData(values);
      };
    }
    return value(member, column, path);
  }

  /** Keys of every type are texts. A key or a value that an entry does not have is the default of its type. */
  private ProtobufColumn map(ProtobufType entry, Type column, List<String> path) {
    ProtobufType.Member key = entry.member(1);
    ProtobufType.Member value = entry.member(2);
    ProtobufColumn values = value(value, column.element, path);
    Object absent = value.message == null ? value.absent : new Object[value.message.members.size()];
    return read -> {
      MapBuilder map = new MapBuilder();
      for (Object each : (List<?>) read) {
        Object[] pair = (Object[]) each;
        Object name = pair[key.place] == null ? key.absent : pair[key.place];
        map.put(text(name, key.kind), values.of(pair[value.place] == null ? absent : pair[value.place]));
      }
      return map.build();
    };
  }

  private static UTF8String text(Object key, ProtobufType.Kind kind) {
    if (key instanceof UTF8String) {
      return (UTF8String) key;
    }
    boolean isUnsigned = kind == ProtobufType.Kind.UINT64 || kind == ProtobufType.Kind.FIXED64;
    return UTF8String.fromString(isUnsigned ? Long.toUnsignedString((Long) key) : key.toString());
  }

  private ProtobufColumn value(ProtobufType.Member member, Type column, List<String> path) {
    if (member.message == null) {
      return scalar(member.kind, column);
    }
    if (column.kind != Type.Kind.STRUCT) {
      return WellKnown.column(member.message, column);
    }
    Cell[] cells = cells(member.message, column, path);
    member.message.widest = Math.max(member.message.widest, column.fields.length);
    return read -> {
      ObjectCells row = new ObjectCells(column, 0);
      fill(cells, (Object[]) read, row);
      return new GenericInternalRow(row.values);
    };
  }

  static ProtobufColumn scalar(ProtobufType.Kind kind, Type column) {
    switch (column.kind) {
      case DECIMAL:
        return read -> unsigned((Long) read, column);
      case BIGINT:
        return read -> ((Number) read).longValue();
      case DOUBLE:
        return read -> ((Number) read).doubleValue();
      case DATE:
      case TIMESTAMP:
        return read -> {
          Object value = Times.ofNumber(column, ((Number) read).longValue());
          if (value == null) {
            throw BadMessage.misfit(column, read.toString());
          }
          return value;
        };
      default:
        return read -> read;
    }
  }

  private static Decimal unsigned(long bits, Type column) {
    return Numbers.decimal(new java.math.BigInteger(Long.toUnsignedString(bits)), 0, column);
  }
}
