package sluice;

import java.io.Serializable;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The values of one column for so many rows. The code that Spark compiles reads them without a row between, and reads something also where
 * there is no value. Each subclass has what the values of its types need, and no other type is asked of it.
 */
abstract class Column extends ColumnVector {
  private int rows;
  private Copy shown; // null: its own values

  Column(DataType type, int rows) {
    super(type);
    this.rows = rows;
  }

  /** The way in which a single value is read. */
  enum Kind {
    TRUTH, BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, DECIMAL, TEXT, BYTES;

    /** Null for types whose values are not single ones, or are numbers of more than eight bytes. */
    static Kind of(DataType type) {
      if (type instanceof DecimalType decimal) {
        return decimal.precision() <= Decimal.MAX_LONG_DIGITS() ? DECIMAL : null;
      }
      return switch (type.typeName()) {
        case "boolean" -> TRUTH;
        case "byte" -> BYTE;
        case "short" -> SHORT;
        case "integer", "date" -> INT;
        case "long", "timestamp", "timestamp_ntz" -> LONG;
        case "float" -> FLOAT;
        case "double" -> DOUBLE;
        case "string" -> TEXT;
        case "binary" -> BYTES;
        default -> null;
      };
    }
  }

  static Column of(DataType type, int rows) {
    Kind kind = Kind.of(type);
    if (kind == null) {
      return new ObjectColumn(type, rows);
    }
    return kind == Kind.TEXT || kind == Kind.BYTES ? new TextColumn(type, rows) : new NumberColumn(type, rows);
  }

  /** Puts a value as Spark has it, or null. */
  abstract void put(int row, Object value);

  void putNumber(int row, long bits) {
    throw has("numbers");
  }

  void putText(int row, byte[] bytes, int from, int to) {
    throw has("texts");
  }

  /** Removes all values: large ones must not stay in memory beside the next ones. */
  abstract void clear();

  /** Values that stay when the column gets other ones. */
  interface Copy extends Serializable {
    int rows();

    /** About how many bytes of memory it takes. */
    long size();
  }

  /** The values of the first `count` of these rows, which are in order. */
  final Copy copy(int[] rows, int count) {
    return shown != null && count == shown.rows() ? shown : copied(rows, count);
  }

  abstract Copy copied(int[] rows, int count);

  /** About how many bytes a copy of these rows would have. */
  long size(int[] rows, int count) {
    return count * (Long.BYTES + 1L);
  }

  /** Shows the values of a copy instead of its own, until it shows others. */
  final void show(Copy copy) {
    shown = copy;
    rows = copy.rows();
    put(copy);
  }

  abstract void put(Copy copy);

  /** Adds the values of the first `count` of these rows to a column of a file. */
  void addTo(ColumnPages pages, int[] rows, int count) {
    throw has("pages");
  }

  @Override
  public void close() {}

  @Override
  public boolean hasNull() {
    return true;
  }

  @Override
  public int numNulls() {
    int count = 0;
    for (int row = 0; row < rows; row++) {
      count += isNullAt(row) ? 1 : 0;
    }
    return count;
  }

  @Override
  public boolean getBoolean(int row) {
    throw has("truths");
  }

  @Override
  public byte getByte(int row) {
    throw has("numbers");
  }

  @Override
  public short getShort(int row) {
    throw has("numbers");
  }

  @Override
  public int getInt(int row) {
    throw has("numbers");
  }

  @Override
  public long getLong(int row) {
    throw has("numbers");
  }

  @Override
  public float getFloat(int row) {
    throw has("numbers");
  }

  @Override
  public double getDouble(int row) {
    throw has("numbers");
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    throw has("decimals");
  }

  @Override
  public UTF8String getUTF8String(int row) {
    throw has("texts");
  }

  @Override
  public byte[] getBinary(int row) {
    throw has("bytes");
  }

  @Override
  public ColumnarArray getArray(int row) {
    throw has("lists");
  }

  @Override
  public ColumnarMap getMap(int row) {
    throw has("maps");
  }

  @Override
  public ColumnVector getChild(int place) {
    throw has("fields");
  }

  private UnsupportedOperationException has(String what) {
    return new UnsupportedOperationException("a column of type " + type + " has no " + what);
  }
}
