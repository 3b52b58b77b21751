package sluice;

import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import org.apache.iceberg.Schema;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.Table;
import org.apache.iceberg.spark.SparkSchemaUtil;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** The columns by which a table is partitioned, of one of Spark's rows, as Iceberg's transforms want their values. */
final class PartitionValues implements StructLike, Serializable {
  private final DataType[] types;
  private final int[] places;
  private transient InternalRow row;

  /** `names` are the columns of the rows that are given. */
  PartitionValues(Table table, List<String> names) {
    StructType columns = SparkSchemaUtil.convert(schema(table));
    types = Arrays.stream(columns.fields()).map(each -> each.dataType()).toArray(DataType[]::new);
    places = Arrays.stream(columns.fieldNames()).mapToInt(names::indexOf).toArray();
  }

  /** The columns by which the table is partitioned, in the order of the table's. */
  static Schema schema(Table table) {
    return table.schema().select(table.spec().fields().stream().map(each -> table.schema().findColumnName(each.sourceId())).toList());
  }

  PartitionValues of(InternalRow given) {
    row = given;
    return this;
  }

  @Override
  public int size() {
    return places.length;
  }

  @Override
  public <T> T get(int at, Class<T> type) {
    return row.isNullAt(places[at]) ? null : type.cast(value(row.get(places[at], types[at])));
  }

  private static Object value(Object value) {
    if (value instanceof UTF8String text) {
      return text.toString();
    }
    if (value instanceof Decimal decimal) {
      return decimal.toJavaBigDecimal();
    }
    return value instanceof byte[] bytes ? ByteBuffer.wrap(bytes) : value;
  }

  @Override
  public <T> void set(int at, T value) {
    throw new UnsupportedOperationException("the values of a row stay");
  }
}
