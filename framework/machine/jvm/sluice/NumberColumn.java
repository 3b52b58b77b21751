package sluice;

import java.util.Arrays;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;

/** Whole numbers, bits of real ones, unscaled numbers of short decimals, days, microseconds, and truths. */
final class NumberColumn extends Column {
  private long[] numbers;
  private boolean[] areNull;

  NumberColumn(DataType type, int rows) {
    super(type, rows);
    numbers = new long[rows];
    areNull = new boolean[rows];
    clear();
  }

  record Numbers(long[] numbers, boolean[] areNull) implements Copy {
    @Override
    public int rows() {
      return numbers.length;
    }

    @Override
    public long size() {
      return numbers.length * (Long.BYTES + 1L);
    }
  }

  @Override
  void put(int row, Object value) {
    areNull[row] = value == null;
    if (value != null) {
      numbers[row] = bits(value);
    }
  }

  static long bits(Object value) {
    if (value instanceof Double number) {
      return Double.doubleToRawLongBits(number);
    } else if (value instanceof Float number) {
      return Float.floatToRawIntBits(number);
    } else if (value instanceof Decimal number) {
      return number.toUnscaledLong();
    } else if (value instanceof Boolean truth) {
      return truth ? 1 : 0;
    }
    return ((Number) value).longValue();
  }

  @Override
  void putNumber(int row, long bits) {
    areNull[row] = false;
    numbers[row] = bits;
  }

  @Override
  void clear() {
    Arrays.fill(areNull, true);
  }

  @Override
  Copy copied(int[] rows, int count) {
    Numbers copy = new Numbers(new long[count], new boolean[count]);
    for (int at = 0; at < count; at++) {
      copy.numbers[at] = numbers[rows[at]];
      copy.areNull[at] = areNull[rows[at]];
    }
    return copy;
  }

  @Override
  void put(Copy copy) {
    numbers = ((Numbers) copy).numbers;
    areNull = ((Numbers) copy).areNull;
  }

  @Override
  void addTo(ColumnPages pages, int[] rows, int count) {
    pages.add(numbers, areNull, rows, count);
  }

  @Override
  public boolean isNullAt(int row) {
    return areNull[row];
  }

  @Override
  public boolean getBoolean(int row) {
    return numbers[row] != 0;
  }

  @Override
  public byte getByte(int row) {
    return (byte) numbers[row];
  }

  @Override
  public short getShort(int row) {
    return (short) numbers[row];
  }

  @Override
  public int getInt(int row) {
    return (int) numbers[row];
  }

  @Override
  public long getLong(int row) {
    return numbers[row];
  }

  @Override
  public float getFloat(int row) {
    return Float.intBitsToFloat((int) numbers[row]);
  }

  @Override
  public double getDouble(int row) {
    return Double.longBitsToDouble(numbers[row]);
  }

  /** What is no value may have more digits than the type. */
  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    return areNull[row] ? null : Decimal.createUnsafe(numbers[row], precision, scale);
  }
}
