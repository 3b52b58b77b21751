package sluice;

import java.util.Map;

/** Confluent's frame: a byte 0, four bytes of the schema's id, then what that schema describes. */
final class Frame implements MessageReader {
  private static final int LENGTH = 5;

  private final String part;
  private final Map<Integer, MessageReader> readers;

  Frame(String part, Map<Integer, MessageReader> readers) {
    this.part = part;
    this.readers = readers;
  }

  @Override
  public void read(byte[] message, int from, Cells cells) {
    if (message.length - from < LENGTH || message[from] != 0) {
      throw BadMessage.undecodable("the " + part + " does not begin with the id of a schema");
    }
    int id = (message[from + 1] & 0xFF) << 24 | (message[from + 2] & 0xFF) << 16 | (message[from + 3] & 0xFF) << 8 | message[from + 4] & 0xFF;
    MessageReader reader = readers.get(id);
    if (reader == null) {
      throw BadMessage.of(BadMessage.UNKNOWN_SCHEMA, "the registry has no schema " + Integer.toUnsignedString(id));
    }
    reader.read(message, from + LENGTH, cells);
  }
}
