package sluice;

import java.io.IOException;
import java.io.Serializable;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/** One pass of a task over its part of a frame, which gives the rows as columns, and counts what becomes of each ({@link Judged}). */
abstract class RowPass {
  final AppendTally tally = new AppendTally();

  /** Gives the next rows, in one or more calls. Returns whether there were any. */
  abstract boolean next(RowTaker taker) throws IOException;

  /** What has to be done for such passes. */
  interface Plan extends Serializable {
    /** Each task's pass, of which there is one at a time. */
    JavaRDD<RowPass> passes();

    /** The names of the columns of each row that is given to {@link RowTaker#choose}. */
    List<String> names();
  }

  /** The passes of a frame that has its columns first, and then what is judged. `wanted` are those whose values are given for each row. */
  static Plan plan(Dataset<Row> frame, List<String> wanted, boolean carries) {
    ColumnsPlan columns = ColumnsPlan.of(frame, wanted, carries);
    return columns == null ? new RowsPlan(frame, carries) : columns;
  }

  /** How many columns of such a frame are not judging. */
  static int width(Dataset<Row> frame) {
    return (int) Stream.of(frame.schema().fieldNames()).filter(name -> !Judged.isJudging(name)).count();
  }
}
