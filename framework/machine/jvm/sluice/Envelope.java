package sluice;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * Debezium's change events: of an envelope of `op`, `before`, `after` and `source` the row that was changed, then `_op` and `_source_at`.
 *
 * <p>A delete has the row before it, everything else the row after it; a truncate has none. Of a message of the log (`m`) and of a
 * change of the schema, which has no `op` at all, nothing is read: they become no rows.
 */
final class Envelope {
  private static final Set<String> WITH_AFTER = Set.of("c", "u", "r");
  private static final Set<String> OPS = Set.of("c", "u", "r", "d", "t", "m");
  private static final String TEXT = "`after` or `before` is text, as MongoDB's connector writes it: unwrap it there"
      + " (ExtractNewDocumentState), and write `value: json`";
  private static final int OP = 0;
  private static final int BEFORE = 1;
  private static final int AFTER = 2;
  private static final int SOURCE = 3;
  private static final int DATABASE = 4;
  private static final int DDL = 5;

  /** The type of the message. */
  final Type type;
  /** The type of the rows. */
  final Type columns;
  private final Field[] image;

  Envelope(Description description) {
    image = description.columns.fields;
    Type text = Type.atom("string", Type.Format.PLAIN);
    Field at = field("ts_ms", Type.atom("timestamp", Type.Format.EPOCH_MILLIS));
    type = Type.struct(List.of(field("op", text), field("before", description.columns), field("after", description.columns),
        field("source", Type.struct(List.of(at))), field("databaseName", text), field("ddl", text)));
    List<Field> fields = new ArrayList<>(List.of(image));
    fields.add(field("_op", text));
    fields.add(field("_source_at", Type.atom("timestamp", Type.Format.PLAIN)));
    columns = Type.struct(fields);
  }

  private static Field field(String name, Type type) {
    return new Field(name, name, type, false);
  }

  MessageReader reading(MessageReader body) {
    return (message, from, row) -> {
      ObjectCells envelope = new ObjectCells(type, 0);
      try {
        body.read(message, from, envelope);
      } catch (BadMessage bad) {
        throw bad.isTextAt("before") || bad.isTextAt("after") ? BadMessage.undecodable(TEXT) : bad;
      }
      open(envelope.values, row);
    };
  }

  private void open(Object[] envelope, Cells row) {
    if (envelope[OP] == null) {
      if (envelope[DATABASE] == null && envelope[DDL] == null) {
        throw BadMessage.undecodable("the value is no envelope of Debezium: it has no `op`");
      }
      return;
    }
    String op = envelope[OP].toString();
    if (!OPS.contains(op)) {
      String given = BadMessage.cut(op, 20);
      throw BadMessage.undecodable("the envelope has the op " + given + ", which is none of c, u, d, r, t and m");
    }
    row.put(image.length, envelope[OP]);
    if (op.equals("m")) {
      return;
    }
    InternalRow source = (InternalRow) envelope[SOURCE];
    row.put(image.length + 1, source == null || source.isNullAt(0) ? null : (Object) source.getLong(0));
    if (op.equals("d") || WITH_AFTER.contains(op)) {
      copy(envelope, op, row);
    }
  }

  private void copy(Object[] envelope, String op, Cells row) {
    boolean isDelete = op.equals("d");
    InternalRow values = (InternalRow) envelope[isDelete ? BEFORE : AFTER];
    if (values == null) {
      throw BadMessage.undecodable("the envelope has no `" + (isDelete ? "before" : "after") + "`, and its op is " + op);
    }
    for (int place = 0; place < image.length; place++) {
      row.put(place, values.get(place, image[place].type.spark));
      // Debezium may know only the key of a deleted row.
      if (image[place].required && values.isNullAt(place) && !isDelete) {
        throw Decoder.missing(image[place]);
      }
    }
  }
}
