package sluice;

import java.util.Arrays;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Texts, or other bytes, where they lie: in a message, or in an array of their own. */
final class TextColumn extends Column {
  private final byte[][] bytes; // null: there is no value
  private final int[] starts;
  private final int[] lengths;

  TextColumn(DataType type, int rows) {
    super(type, rows);
    bytes = new byte[rows][];
    starts = new int[rows];
    lengths = new int[rows];
  }

  /** The texts, one behind the other. A length of -1 is of none. */
  private record Texts(byte[] bytes, int[] lengths) implements Copy {
    @Override
    public int rows() {
      return lengths.length;
    }

    @Override
    public long size() {
      return bytes.length + lengths.length * (long) Integer.BYTES;
    }
  }

  @Override
  void put(int row, Object value) {
    if (value == null) {
      bytes[row] = null;
    } else if (value instanceof byte[] whole) {
      putText(row, whole, 0, whole.length);
    } else {
      UTF8String text = (UTF8String) value;
      boolean isInArray = text.getBaseObject() instanceof byte[];
      byte[] base = isInArray ? (byte[]) text.getBaseObject() : text.getBytes();
      int start = isInArray ? (int) (text.getBaseOffset() - Platform.BYTE_ARRAY_OFFSET) : 0;
      putText(row, base, start, start + text.numBytes());
    }
  }

  @Override
  void putText(int row, byte[] base, int from, int to) {
    bytes[row] = base;
    starts[row] = from;
    lengths[row] = to - from;
  }

  @Override
  void clear() {
    Arrays.fill(bytes, null);
  }

  @Override
  long size(int[] rows, int count) {
    long size = 0;
    for (int at = 0; at < count; at++) {
      size += bytes[rows[at]] == null ? 0 : lengths[rows[at]];
    }
    return size;
  }

  @Override
  Copy copied(int[] rows, int count) {
    Texts copy = new Texts(new byte[Math.toIntExact(size(rows, count))], new int[count]);
    int end = 0;
    for (int at = 0; at < count; at++) {
      int row = rows[at];
      copy.lengths[at] = bytes[row] == null ? -1 : lengths[row];
      if (bytes[row] != null) {
        System.arraycopy(bytes[row], starts[row], copy.bytes, end, lengths[row]);
        end += lengths[row];
      }
    }
    return copy;
  }

  @Override
  void put(Copy copy) {
    Texts texts = (Texts) copy;
    int end = 0;
    for (int row = 0; row < texts.lengths.length; row++) {
      int length = texts.lengths[row];
      bytes[row] = length < 0 ? null : texts.bytes;
      starts[row] = end;
      lengths[row] = length;
      end += Math.max(length, 0);
    }
  }

  @Override
  void addTo(ColumnPages pages, int[] rows, int count) {
    pages.add(bytes, starts, lengths, rows, count);
  }

  @Override
  public boolean isNullAt(int row) {
    return bytes[row] == null;
  }

  @Override
  public UTF8String getUTF8String(int row) {
    return bytes[row] == null ? null : UTF8String.fromBytes(bytes[row], starts[row], lengths[row]);
  }

  @Override
  public byte[] getBinary(int row) {
    byte[] whole = bytes[row];
    return whole == null || lengths[row] == whole.length ? whole : Arrays.copyOfRange(whole, starts[row], starts[row] + lengths[row]);
  }
}
