package sluice;

import java.io.Serializable;
import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.TypeUtils;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.math.Ordering;

/** The least and the greatest value of a column of held rows, as Spark has them, and how many rows have none. */
final class Extremes implements Serializable {
  Object least;
  Object greatest;
  long nulls;

  /** Those of some blocks. */
  static Extremes of(Iterator<HeldBlock> blocks, int place, DataType type) {
    Extremes all = new Extremes();
    Ordering<Object> order = TypeUtils.getInterpretedOrdering(type);
    Column column = Column.of(type, Consumers.MOST_MESSAGES);
    ColumnarBatch batch = new ColumnarBatch(new ColumnVector[] {column});
    while (blocks.hasNext()) {
      HeldBlock block = blocks.next();
      if (block.rows() > 0) {
        column.show(block.columns()[place]);
        batch.setNumRows(block.rows());
        batch.rowIterator().forEachRemaining(row -> all.add(row.isNullAt(0) ? null : row.get(0, type), order));
      }
    }
    return all;
  }

  private void add(Object value, Ordering<Object> order) {
    if (value == null) {
      nulls++;
      return;
    }
    if (least == null || order.compare(value, least) < 0) {
      least = InternalRow.copyValue(value);
    }
    if (greatest == null || order.compare(value, greatest) > 0) {
      greatest = InternalRow.copyValue(value);
    }
  }

  void add(Extremes other, DataType type) {
    nulls += other.nulls;
    if (other.least != null) {
      Ordering<Object> order = TypeUtils.getInterpretedOrdering(type);
      add(other.least, order);
      add(other.greatest, order);
    }
  }
}
