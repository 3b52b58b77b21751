package sluice;

import java.io.IOException;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/** A frame whose rows Spark makes, and whose values are then copied into columns. */
final class RowsPlan implements RowPass.Plan {
  private static final int MOST_ROWS = 256;

  private final StructType columns;
  private final List<String> names;
  private final Judged judged;
  private final transient Dataset<Row> frame;

  RowsPlan(Dataset<Row> frame, boolean carries) {
    this.frame = frame;
    columns = new StructType(Arrays.copyOf(frame.schema().fields(), RowPass.width(frame)));
    names = List.of(frame.schema().fieldNames());
    judged = Judged.of(frame.schema(), carries);
  }

  @Override
  public JavaRDD<RowPass> passes() {
    return frame.queryExecution().toRdd().toJavaRDD().mapPartitions(rows -> List.<RowPass>of(new Pass(rows)).iterator());
  }

  @Override
  public List<String> names() {
    return names;
  }

  private final class Pass extends RowPass {
    private final Iterator<InternalRow> rows;
    private final RowColumns copied = new RowColumns(columns, MOST_ROWS);

    Pass(Iterator<InternalRow> rows) {
      this.rows = rows;
    }

    @Override
    boolean next(RowTaker taker) throws IOException {
      int count = 0;
      for (; count < MOST_ROWS && !copied.isFull() && rows.hasNext(); count++) {
        InternalRow row = rows.next();
        if (judged.isGood(row, tally)) {
          copied.put(count, row);
          taker.choose(count, row);
        }
      }
      tally.addRead(count);
      taker.addChosen(copied.columns);
      copied.clear();
      return count > 0;
    }
  }
}
