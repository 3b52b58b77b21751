package sluice;

import java.math.BigInteger;
import java.util.Arrays;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Bytes and a place in them, for Avro and Protobuf. Every read is checked against the end, before anything is allocated: a length of
 * gigabytes in a message of ten bytes costs nothing.
 */
final class BinaryInput {
  private final byte[] bytes;
  /** The places that the structs of this message may take. */
  final Budget budget = new Budget();
  int at;
  int end;

  BinaryInput(byte[] bytes, int from) {
    this.bytes = bytes;
    this.at = from;
    this.end = bytes.length;
  }

  int remaining() {
    return end - at;
  }

  int oneByte() {
    if (at >= end) {
      throw cutOff();
    }
    return bytes[at++];
  }

  /** A number, seven bits in each byte, the lowest first. Bits beyond 64 do not count, says Protobuf. */
  long varint() {
    return varint(false);
  }

  private long varint(boolean isExact) {
    long number = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      int next = oneByte();
      number |= (long) (next & 0x7F) << shift;
      if (next >= 0) {
        if (isExact && shift == 63 && next > 1) {
          break;
        }
        return number;
      }
    }
    throw BadMessage.undecodable("a number has more than 64 bits");
  }

  /** Avro's numbers, which have no more than 64 bits. */
  long zigzag() {
    return unfolded(varint(true));
  }

  /** The number that is small in bytes where it is near 0, on both sides. */
  static long unfolded(long number) {
    return number >>> 1 ^ -(number & 1);
  }

  /** Four bytes, the lowest first. */
  int fixed32() {
    return lowestFirst(take(4));
  }

  long fixed64() {
    int start = take(8);
    return lowestFirst(start) & 0xFFFFFFFFL | (long) lowestFirst(start + 4) << 32;
  }

  private int lowestFirst(int i) {
    return bytes[i] & 0xFF | (bytes[i + 1] & 0xFF) << 8 | (bytes[i + 2] & 0xFF) << 16 | bytes[i + 3] << 24;
  }

  /** Passes so many bytes. Returns where they begin. */
  int take(long length) {
    if (length < 0) {
      throw BadMessage.undecodable("a length is below 0");
    }
    if (length > end - at) {
      throw cutOff();
    }
    int start = at;
    at += (int) length;
    return start;
  }

  UTF8String text(long length) {
    int start = utf8(length);
    return UTF8String.fromBytes(bytes, start, at - start);
  }

  void text(long length, Cells cells, int place) {
    int start = utf8(length);
    cells.putText(place, bytes, start, at);
  }

  private int utf8(long length) {
    int start = take(length);
    if (!Utf8.isValid(bytes, start, at)) {
      throw BadMessage.undecodable("the text is not UTF-8");
    }
    return start;
  }

  byte[] copy(long length) {
    int start = take(length);
    return Arrays.copyOfRange(bytes, start, at);
  }

  /** A whole number, the highest byte first; no bytes are 0. */
  BigInteger bigEndian(long length) {
    int start = take(length);
    return length == 0 ? BigInteger.ZERO : new BigInteger(bytes, start, at - start);
  }

  /** Requires that nothing follows. */
  void checkEnd(String part) {
    if (at != end) {
      int more = end - at;
      throw BadMessage.undecodable(more + (more == 1 ? " byte follows the " : " bytes follow the ") + part);
    }
  }

  static BadMessage cutOff() {
    return BadMessage.undecodable("the message is cut off");
  }
}
