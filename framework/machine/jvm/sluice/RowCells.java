package sluice;

import java.io.Serializable;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Adds values of Spark's, in rows or in columns, to the columns of a file. */
final class RowCells implements Serializable {
  /** The way in which a value is read, and written to Parquet. */
  enum Kind { TRUTH, INT, LONG, FLOAT, DOUBLE, DECIMAL, TEXT, BYTES }

  private static final int LONGEST_DECIMAL = 18; // digits of a whole number of 8 bytes

  private final Kind[] kinds;
  private final DataType[] types;

  RowCells(StructType schema) {
    types = Arrays.stream(schema.fields()).map(StructField::dataType).toArray(DataType[]::new);
    kinds = Arrays.stream(types).map(RowCells::kind).toArray(Kind[]::new);
  }

  /** Null for types whose values are not single ones, or do not fit into a number. */
  static Kind kind(DataType type) {
    if (type instanceof DecimalType decimal) {
      return decimal.precision() <= LONGEST_DECIMAL ? Kind.DECIMAL : null;
    }
    return switch (type.typeName()) {
      case "boolean" -> Kind.TRUTH;
      case "integer", "date" -> Kind.INT;
      case "long", "timestamp", "timestamp_ntz" -> Kind.LONG;
      case "float" -> Kind.FLOAT;
      case "double" -> Kind.DOUBLE;
      case "string" -> Kind.TEXT;
      case "binary" -> Kind.BYTES;
      default -> null;
    };
  }

  /** Adds the values of a row, the first to the column at the first of `places`, and so on. */
  void add(InternalRow row, ColumnPages[] columns, int[] places) {
    for (int at = 0; at < places.length; at++) {
      ColumnPages column = columns[places[at]];
      if (row.isNullAt(at)) {
        column.addNull();
      } else {
        add(row, at, places[at], column);
      }
    }
  }

  /** Adds the values of a column but those that are skipped. `at` is the place of its type. */
  void add(Column values, int at, boolean[] isSkipped, ColumnPages column) {
    for (int row = 0; row < isSkipped.length; row++) {
      if (!isSkipped[row]) {
        add(values.value(row), at, column);
      }
    }
  }

  /** Adds a value as the decoders make it. `at` is the place of its type. */
  void add(Object value, int at, ColumnPages column) {
    if (value == null) {
      column.addNull();
      return;
    }
    switch (kinds[at]) {
      case TRUTH -> column.add((Boolean) value ? 1 : 0);
      case INT -> column.add((Integer) value);
      case LONG -> column.add((Long) value);
      case FLOAT -> column.add(Float.floatToRawIntBits((Float) value));
      case DOUBLE -> column.add(Double.doubleToRawLongBits((Double) value));
      case DECIMAL -> column.add(((Decimal) value).toUnscaledLong());
      case TEXT -> text((UTF8String) value, column);
      default -> column.add((byte[]) value, 0, ((byte[]) value).length);
    }
  }

  private void add(InternalRow row, int at, int place, ColumnPages column) {
    switch (kinds[place]) {
      case TRUTH -> column.add(row.getBoolean(at) ? 1 : 0);
      case INT -> column.add(row.getInt(at));
      case LONG -> column.add(row.getLong(at));
      case FLOAT -> column.add(Float.floatToRawIntBits(row.getFloat(at)));
      case DOUBLE -> column.add(Double.doubleToRawLongBits(row.getDouble(at)));
      case DECIMAL -> {
        DecimalType type = (DecimalType) types[place];
        column.add(row.getDecimal(at, type.precision(), type.scale()).toUnscaledLong());
      }
      case TEXT -> text(row.getUTF8String(at), column);
      default -> {
        byte[] bytes = row.getBinary(at);
        column.add(bytes, 0, bytes.length);
      }
    }
  }

  private static void text(UTF8String text, ColumnPages column) {
    if (text.getBaseObject() instanceof byte[] bytes) {
      column.add(bytes, (int) (text.getBaseOffset() - Platform.BYTE_ARRAY_OFFSET), text.numBytes());
    } else {
      byte[] bytes = text.getBytes();
      column.add(bytes, 0, bytes.length);
    }
  }
}
