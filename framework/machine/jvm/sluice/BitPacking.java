package sluice;

import java.io.ByteArrayOutputStream;

/** Small numbers as Parquet packs them: if all are equal, as a run of their count and the number; else in groups of eight. */
final class BitPacking {
  private static final int GROUP = 8;

  private BitPacking() {}

  /** Numbers that each take so many bits. */
  static byte[] of(int[] numbers, int count, int bits) {
    if (areEqual(numbers, count)) {
      return run(count, count == 0 ? 0 : numbers[0], bits);
    }
    byte[] header = varint(groups(count) << 1 | 1);
    byte[] packed = new byte[header.length + groups(count) * bits];
    System.arraycopy(header, 0, packed, 0, header.length);
    int next = header.length;
    long buffer = 0;
    int filled = 0;
    for (int at = 0; at < count; at++) {
      buffer |= (long) numbers[at] << filled;
      for (filled += bits; filled >= Byte.SIZE; filled -= Byte.SIZE) {
        packed[next++] = (byte) buffer;
        buffer >>>= Byte.SIZE;
      }
    }
    if (filled > 0) {
      packed[next] = (byte) buffer;
    }
    return packed;
  }

  private static boolean areEqual(int[] numbers, int count) {
    for (int at = 1; at < count; at++) {
      if (numbers[at] != numbers[0]) {
        return false;
      }
    }
    return true;
  }

  static byte[] run(int count, int number, int bits) {
    ByteArrayOutputStream run = new ByteArrayOutputStream();
    run.writeBytes(varint(count << 1));
    for (int shift = 0; shift < bits; shift += Byte.SIZE) {
      run.write(number >>> shift);
    }
    return run.toByteArray();
  }

  /** A bit for each of the first `count`: whether it is as `wanted`. */
  static byte[] of(boolean[] truths, int count, boolean wanted) {
    byte[] header = varint(groups(count) << 1 | 1);
    byte[] packed = new byte[header.length + groups(count)];
    System.arraycopy(header, 0, packed, 0, header.length);
    for (int at = 0; at < count; at++) {
      if (truths[at] == wanted) {
        packed[header.length + at / Byte.SIZE] |= (byte) (1 << at % Byte.SIZE);
      }
    }
    return packed;
  }

  /** A bit for each number, which is 0 or 1, and nothing in front of them. */
  static byte[] bits(byte[] numbers, int count) {
    byte[] packed = new byte[groups(count)];
    for (int at = 0; at < count; at++) {
      packed[at / Byte.SIZE] |= (byte) (numbers[at] << at % Byte.SIZE);
    }
    return packed;
  }

  private static int groups(int count) {
    return (count + GROUP - 1) / GROUP;
  }

  /** A number in pieces of seven bits, the lowest first. */
  private static byte[] varint(int number) {
    byte[] bytes = new byte[Math.max(1, (Integer.SIZE - Integer.numberOfLeadingZeros(number) + 6) / 7)];
    for (int at = 0; at < bytes.length; at++) {
      bytes[at] = (byte) (number >>> 7 * at & 0x7F | (at < bytes.length - 1 ? 0x80 : 0));
    }
    return bytes;
  }
}
