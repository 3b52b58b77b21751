package sluice;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Decodes messages by one description. It keeps nothing between messages, so that all tasks of a process share one.
 */
final class Decoder {
  private static final int MOST = 200;
  private static final Map<String, Decoder> DECODERS = new ConcurrentHashMap<>();

  final StructType resultType;
  private final Description description;
  private final Type columns;
  private final MessageReader reader;
  private final int width;

  private Decoder(Description description) {
    this.description = description;
    Envelope envelope = description.isDebezium ? new Envelope(description) : null;
    Type message = envelope == null ? description.columns : envelope.type;
    columns = envelope == null ? description.columns : envelope.columns;
    MessageReader body = Readers.of(description, message);
    reader = envelope == null ? body : envelope.reading(body);
    width = columns.fields.length;
    resultType = ((StructType) columns.spark).add("_sluice_code", "string").add("_sluice_why", "string");
  }

  static Decoder of(String description) {
    Decoder decoder = DECODERS.get(description);
    if (decoder == null) {
      decoder = new Decoder(Description.of(description));
      if (DECODERS.size() >= MOST) {
        DECODERS.clear();
      }
      DECODERS.put(description, decoder);
    }
    return decoder;
  }

  /** The columns, then the code and the reason; if `quiet`, a reason without any part of the message. */
  Object[] row(byte[] message, boolean quiet) {
    ObjectCells cells = new ObjectCells(columns, 2);
    read(message, quiet, cells);
    return cells.values;
  }

  /** Puts them into cells, in which nothing is yet. */
  void read(byte[] message, boolean quiet, Cells cells) {
    try {
      if (message != null) {
        fill(message, cells);
      } else if (description.absent.equals("bad")) {
        throw BadMessage.of(BadMessage.NULL_VALUE, "the message has no " + description.part);
      } else if (description.absent.equals("empty")) {
        checkRequired(cells);
      }
    } catch (BadMessage bad) {
      refuse(cells, bad.code, quiet ? bad.quietWhy() : bad.why());
    } catch (RuntimeException error) { // a fault of ours must not stop all messages behind this one
      refuse(cells, BadMessage.UNDECODABLE, "the decoder failed: " + (quiet ? error.getClass().getName() : error));
    }
  }

  private void fill(byte[] message, Cells cells) {
    if (message.length > description.largest) {
      throw BadMessage.of(BadMessage.TOO_LARGE, "the " + description.part + " is over " + description.largest + " bytes");
    }
    reader.read(message, 0, cells);
    if (!description.isDebezium) {
      checkRequired(cells);
    }
  }

  private void checkRequired(Cells cells) {
    for (int place = 0; place < width; place++) {
      if (columns.fields[place].required && cells.isNull(place)) {
        throw missing(columns.fields[place]);
      }
    }
  }

  static BadMessage missing(Field field) {
    return BadMessage.of(BadMessage.MISSING_FIELD, "`" + field.name + "` is required and missing or null");
  }

  private void refuse(Cells cells, String code, String why) {
    for (int place = 0; place < width; place++) {
      cells.put(place, null);
    }
    cells.put(width, UTF8String.fromString(code));
    cells.put(width + 1, why == null ? null : UTF8String.fromString(why));
  }
}
