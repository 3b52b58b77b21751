package sluice;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;

/**
 * Makes, of one writer's schema and the columns, what reads its messages: a field goes to the column with its name, a field without a
 * column is passed over, and a column without a field is null.
 *
 * <p>A type that its column cannot hold makes a bad row of each message that has a value of it.
 */
final class Avro {
  /** Columns' names by the paths of the writer's fields, where they are others. */
  private final Map<List<String>, String> names = new HashMap<>();
  private final Map<AvroType, AvroReader> skipping = new IdentityHashMap<>();

  private Avro(JsonNode names) {
    for (JsonNode each : names) {
      this.names.put(Paths.of(each.get(0)), each.get(1).asText());
    }
  }

  static MessageReader reader(JsonNode writer, Type columns) {
    AvroType schema = AvroSchema.record(writer.get("schema"), writer.path("references"));
    Avro avro = new Avro(writer.path("names"));
    Member[] members = avro.members(schema, columns, List.of());
    return (message, from, cells) -> {
      BinaryInput in = new BinaryInput(message, from);
      fill(members, in, cells);
      in.checkEnd("message");
    };
  }

  /** A field of a record: where its value goes (-1: nowhere), and what reads it. */
  private static final class Member {
    final String name;
    final int place;
    final Field field;
    final AvroReader reader;

    Member(String name, int place, Field field, AvroReader reader) {
      this.name = name;
      this.place = place;
      this.field = field;
      this.reader = reader;
    }
  }

  private static void fill(Member[] members, BinaryInput in, Cells cells) {
    for (Member member : members) {
      try {
        member.reader.read(in, cells, member.place);
      } catch (BadMessage bad) {
        throw member.field == null ? bad.within(member.name) : bad.within(member.field);
      }
    }
  }

  private Member[] members(AvroType record, Type struct, List<String> path) {
    Member[] members = new Member[record.members.size()];
    boolean[] isTaken = new boolean[struct.fields.length];
    for (int i = 0; i < members.length; i++) {
      String name = record.memberNames.get(i);
      List<String> inside = Paths.with(path, name);
      int place = place(struct, names.getOrDefault(inside, name));
      boolean isColumn = place >= 0 && !isTaken[place] && holdsSomething(record.members.get(i));
      if (isColumn) {
        isTaken[place] = true;
        members[i] = new Member(name, place, struct.fields[place], reader(record.members.get(i), struct.fields[place].type, inside));
      } else {
        members[i] = new Member(name, -1, null, skip(record.members.get(i)));
      }
    }
    return members;
  }

  private static int place(Type struct, String name) {
    for (int place = 0; place < struct.fields.length; place++) {
      if (struct.fields[place].source.equals(name)) {
        return place;
      }
    }
    return -1;
  }

  private static boolean holdsSomething(AvroType type) {
    return !type.is("null") && !(type.is("record") && type.members.isEmpty());
  }

  private AvroReader reader(AvroType type, Type column, List<String> path) {
    switch (type.kind) {
      case "union":
        return union(type, column, path);
      case "record":
        if (column.kind != Type.Kind.STRUCT) {
          return misfitting(type, column);
        }
        Member[] members = members(type, column, path);
        return struct(members, column);
      case "array":
        return column.kind == Type.Kind.ARRAY
            ? AvroReaders.array(reader(type.members.get(0), column.element, path), column) : misfitting(type, column);
      case "map":
        return column.kind == Type.Kind.MAP
            ? AvroReaders.map(reader(type.members.get(0), column.element, path), column) : misfitting(type, column);
      default:
        AvroReader atom = AvroReaders.atom(type, column);
        return atom == null ? misfitting(type, column) : atom;
    }
  }

  /** Reads a union: null and one type, or a number in two widths, as that type; any other as a struct of which one field is set. */
  private AvroReader union(AvroType union, Type column, List<String> path) {
    boolean isPlain = column.kind != Type.Kind.STRUCT || union.values().size() == 1;
    AvroReader[] readers = new AvroReader[union.members.size()];
    for (int i = 0; i < readers.length; i++) {
      AvroType member = union.members.get(i);
      if (member.is("null")) {
        readers[i] = absent(skip(member));
      } else if (isPlain) {
        readers[i] = reader(member, column, path);
      } else {
        readers[i] = memberOfStruct(union, i, column, path);
      }
    }
    return (in, cells, place) -> readers[AvroReaders.index(in, readers.length, "type")].read(in, cells, place);
  }

  private AvroReader memberOfStruct(AvroType union, int i, Type struct, List<String> path) {
    String name = union.memberNames.get(i);
    List<String> inside = Paths.with(path, name);
    int place = place(struct, names.getOrDefault(inside, name));
    if (place < 0) {
      return holdsSomething(union.members.get(i)) ? misfitting(union.members.get(i), struct) : absent(skip(union.members.get(i)));
    }
    Field field = struct.fields[place];
    Member[] alone = {new Member(name, place, field, reader(union.members.get(i), field.type, inside))};
    return struct(alone, struct);
  }

  /** Passes over a value, and puts null. */
  private static AvroReader absent(AvroReader skipping) {
    return (in, cells, place) -> {
      skipping.read(in, cells, place);
      cells.put(place, null);
    };
  }

  private static AvroReader struct(Member[] members, Type struct) {
    return (in, cells, place) -> {
      in.budget.spend(struct.fields.length);
      ObjectCells fields = new ObjectCells(struct, 0);
      fill(members, in, fields);
      cells.put(place, new GenericInternalRow(fields.values));
    };
  }

  private static AvroReader misfitting(AvroType type, Type column) {
    String given = type.name.isEmpty() ? type.toString() : type.name;
    return (in, cells, place) -> {
      throw BadMessage.misfit(column, given);
    };
  }

  /** Passes over a value; once per type, since a schema can refer to one from many places. */
  private AvroReader skip(AvroType type) {
    AvroReader reader = skipping.get(type);
    if (reader == null) {
      AvroReader[] members = type.members.stream().map(this::skip).toArray(AvroReader[]::new);
      reader = AvroReaders.skip(type, members);
      skipping.put(type, reader);
    }
    return reader;
  }
}
