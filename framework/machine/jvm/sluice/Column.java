package sluice;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The values of one column for so many rows, as the decoders make them. The code that Spark compiles reads them without a row between, and
 * reads something also where there is no value.
 */
class Column extends ColumnVector {
  final Object[] values;
  private final Column[] fields;

  Column(DataType type, int rows) {
    this(type, new Object[rows]);
  }

  private Column(DataType type, Object[] values) {
    super(type);
    this.values = values;
    this.fields = new Column[type instanceof StructType ? ((StructType) type).length() : 0];
  }

  Object value(int row) {
    return values[row];
  }

  /** One field of a column of structs. */
  private static final class OfStruct extends Column {
    private final Column structs;
    private final int place;

    OfStruct(Column structs, int place) {
      super(((StructType) structs.dataType()).fields()[place].dataType(), 0);
      this.structs = structs;
      this.place = place;
    }

    @Override
    Object value(int row) {
      InternalRow struct = (InternalRow) structs.value(row);
      return struct == null || struct.isNullAt(place) ? null : struct.get(place, dataType());
    }
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
    for (int row = 0; row < values.length; row++) {
      count += isNullAt(row) ? 1 : 0;
    }
    return count;
  }

  @Override
  public boolean isNullAt(int row) {
    return value(row) == null;
  }

  @Override
  public boolean getBoolean(int row) {
    return value(row) instanceof Boolean present ? present : false;
  }

  @Override
  public byte getByte(int row) {
    return value(row) instanceof Byte present ? present : 0;
  }

  @Override
  public short getShort(int row) {
    return value(row) instanceof Short present ? present : 0;
  }

  @Override
  public int getInt(int row) {
    return value(row) instanceof Integer present ? present : 0;
  }

  @Override
  public long getLong(int row) {
    return value(row) instanceof Long present ? present : 0;
  }

  @Override
  public float getFloat(int row) {
    return value(row) instanceof Float present ? present : 0;
  }

  @Override
  public double getDouble(int row) {
    return value(row) instanceof Double present ? present : 0;
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    return (Decimal) value(row);
  }

  @Override
  public UTF8String getUTF8String(int row) {
    return (UTF8String) value(row);
  }

  @Override
  public byte[] getBinary(int row) {
    return (byte[]) value(row);
  }

  @Override
  public ColumnarArray getArray(int row) {
    ArrayData array = (ArrayData) value(row);
    return array == null ? null : new ColumnarArray(of(array, ((ArrayType) dataType()).elementType()), 0, array.numElements());
  }

  @Override
  public ColumnarMap getMap(int row) {
    MapData map = (MapData) value(row);
    MapType type = (MapType) dataType();
    return map == null
        ? null
        : new ColumnarMap(of(map.keyArray(), type.keyType()), of(map.valueArray(), type.valueType()), 0, map.numElements());
  }

  private static Column of(ArrayData array, DataType type) {
    return new Column(type, array.toObjectArray(type));
  }

  @Override
  public ColumnVector getChild(int place) {
    if (fields[place] == null) {
      fields[place] = new OfStruct(this, place);
    }
    return fields[place];
  }
}
