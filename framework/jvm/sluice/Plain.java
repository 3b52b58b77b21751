package sluice;

import org.apache.spark.unsafe.types.UTF8String;

/** Messages that are one value: a text, bytes, or a whole number of eight bytes. */
final class Plain {
  private Plain() {}

  static final class Text implements MessageReader {
    private final String part;

    Text(String part) {
      this.part = part;
    }

    @Override
    public void read(byte[] message, int from, Object[] row) {
      if (!Utf8.isValid(message, from, message.length)) {
        throw BadMessage.undecodable("the " + part + " is not UTF-8 text");
      }
      row[0] = UTF8String.fromBytes(message, from, message.length - from);
    }
  }

  static final class Bytes implements MessageReader {
    @Override
    public void read(byte[] message, int from, Object[] row) {
      row[0] = message;
    }
  }

  /** The highest byte first, as Java's clients write it. */
  static final class BigEndianLong implements MessageReader {
    private final String part;

    BigEndianLong(String part) {
      this.part = part;
    }

    @Override
    public void read(byte[] message, int from, Object[] row) {
      if (message.length - from != 8) {
        throw BadMessage.undecodable("the " + part + " is not a number of 8 bytes");
      }
      long number = 0;
      for (int i = from; i < message.length; i++) {
        number = number << 8 | message[i] & 0xFF;
      }
      row[0] = number;
    }
  }
}
