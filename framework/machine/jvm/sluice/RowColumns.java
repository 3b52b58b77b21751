package sluice;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Columns of values that are copied out of rows of Spark: of each row that it gives, Spark uses the memory again. */
final class RowColumns {
  private static final int MOST_BYTES = 4 << 20; // of texts; behind them no other row is taken
  private static final int FIRST_SIZE = 1 << 14;

  final Column[] columns;
  private final Column.Kind[] kinds;
  private final DataType[] types;
  private byte[] texts = new byte[FIRST_SIZE];
  private int size; // of the texts in this array
  private long sizeOfAll;

  RowColumns(StructType schema, int rows) {
    types = Arrays.stream(schema.fields()).map(StructField::dataType).toArray(DataType[]::new);
    kinds = Arrays.stream(types).map(Column.Kind::of).toArray(Column.Kind[]::new);
    columns = Arrays.stream(types).map(type -> Column.of(type, rows)).toArray(Column[]::new);
  }

  /** Copies the first values of a row. */
  void put(int at, InternalRow row) {
    for (int place = 0; place < columns.length; place++) {
      if (row.isNullAt(place)) {
        columns[place].put(at, null);
      } else if (kinds[place] == null) {
        columns[place].put(at, InternalRow.copyValue(row.get(place, types[place])));
      } else {
        put(at, row, place);
      }
    }
  }

  private void put(int at, InternalRow row, int place) {
    Column column = columns[place];
    switch (kinds[place]) {
      case TRUTH -> column.putNumber(at, row.getBoolean(place) ? 1 : 0);
      case BYTE -> column.putNumber(at, row.getByte(place));
      case SHORT -> column.putNumber(at, row.getShort(place));
      case INT -> column.putNumber(at, row.getInt(place));
      case LONG -> column.putNumber(at, row.getLong(place));
      case FLOAT -> column.putNumber(at, Float.floatToRawIntBits(row.getFloat(place)));
      case DOUBLE -> column.putNumber(at, Double.doubleToRawLongBits(row.getDouble(place)));
      case DECIMAL -> {
        DecimalType type = (DecimalType) types[place];
        column.putNumber(at, row.getDecimal(place, type.precision(), type.scale()).toUnscaledLong());
      }
      case TEXT -> {
        UTF8String text = row.getUTF8String(place);
        copy(column, at, text.getBaseObject(), text.getBaseOffset(), text.numBytes());
      }
      default -> {
        byte[] bytes = row.getBinary(place);
        copy(column, at, bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length);
      }
    }
  }

  private void copy(Column column, int at, Object base, long offset, int length) {
    if (length > texts.length - size) { // the columns keep the array that is full
      texts = new byte[Math.max(length, Math.min(2 * texts.length, MOST_BYTES))];
      size = 0;
    }
    Platform.copyMemory(base, offset, texts, Platform.BYTE_ARRAY_OFFSET + size, length);
    column.putText(at, texts, size, size + length);
    size += length;
    sizeOfAll += length;
  }

  boolean isFull() {
    return sizeOfAll >= MOST_BYTES;
  }

  void clear() {
    for (Column each : columns) {
      each.clear();
    }
    if (texts.length > MOST_BYTES) {
      texts = new byte[FIRST_SIZE];
    }
    size = 0;
    sizeOfAll = 0;
  }
}
