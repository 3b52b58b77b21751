package sluice;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.VariantType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.VariantVal;
import org.apache.spark.util.SizeEstimator;

/** Lists, maps, structs and long decimals, as Spark has them. */
final class ObjectColumn extends Column {
  private static final int PARTS_OF_VARIANT = 2;

  private final Object[] values;
  private final Column[] fields; // of structs, as far as somebody asked for them

  ObjectColumn(DataType type, int rows) {
    super(type, rows);
    values = new Object[rows];
    fields = new Column[type instanceof StructType struct ? struct.length() : type instanceof VariantType ? PARTS_OF_VARIANT : 0];
  }

  private record Objects(Object[] values) implements Copy {
    @Override
    public int rows() {
      return values.length;
    }

    @Override
    public long size() {
      return SizeEstimator.estimate(values);
    }
  }

  @Override
  void put(int row, Object value) {
    values[row] = value;
  }

  @Override
  void clear() {
    Arrays.fill(values, null);
    Arrays.fill(fields, null);
  }

  @Override
  Copy copied(int[] rows, int count) {
    Object[] copy = new Object[count];
    for (int at = 0; at < count; at++) {
      copy[at] = InternalRow.copyValue(values[rows[at]]);
    }
    return new Objects(copy);
  }

  @Override
  void put(Copy copy) {
    clear();
    Object[] shown = ((Objects) copy).values;
    System.arraycopy(shown, 0, values, 0, shown.length);
  }

  @Override
  public boolean isNullAt(int row) {
    return values[row] == null;
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    return (Decimal) values[row];
  }

  @Override
  public ColumnarArray getArray(int row) {
    ArrayData array = (ArrayData) values[row];
    return array == null ? null : new ColumnarArray(of(array, ((ArrayType) type).elementType()), 0, array.numElements());
  }

  @Override
  public ColumnarMap getMap(int row) {
    MapData map = (MapData) values[row];
    MapType ofMap = (MapType) type;
    return map == null
        ? null
        : new ColumnarMap(of(map.keyArray(), ofMap.keyType()), of(map.valueArray(), ofMap.valueType()), 0, map.numElements());
  }

  private static Column of(ArrayData array, DataType type) {
    Object[] items = array.toObjectArray(type);
    Column column = Column.of(type, items.length);
    for (int at = 0; at < items.length; at++) {
      column.put(at, items[at]);
    }
    return column;
  }

  @Override
  public ColumnVector getChild(int place) {
    if (fields[place] == null && type instanceof VariantType) {
      fields[place] = variants(place);
    } else if (fields[place] == null) {
      DataType of = ((StructType) type).fields()[place].dataType();
      fields[place] = Column.of(of, values.length);
      for (int row = 0; row < values.length; row++) {
        InternalRow struct = (InternalRow) values[row];
        fields[place].put(row, struct == null || struct.isNullAt(place) ? null : struct.get(place, of));
      }
    }
    return fields[place];
  }

  /** The bytes of the values, or those of the names that they use. */
  private Column variants(int place) {
    Column column = Column.of(DataTypes.BinaryType, values.length);
    for (int row = 0; row < values.length; row++) {
      VariantVal variant = (VariantVal) values[row];
      column.put(row, variant == null ? null : place == 0 ? variant.getValue() : variant.getMetadata());
    }
    return column;
  }
}
