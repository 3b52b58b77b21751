package sluice;

import java.io.Serializable;
import java.util.Arrays;
import org.apache.spark.util.KnownSizeEstimation;
import org.apache.spark.util.SizeEstimator;

/** Rows that are held, as columns; or none, but what a pass has counted. Spark is told the size: to find it out takes as long as to read. */
record HeldBlock(int rows, Column.Copy[] columns, AppendTally tally, long estimatedSize) implements Serializable, KnownSizeEstimation {
  private static final long OF_EACH_COLUMN = 64; // bytes of its objects

  /** The chosen rows of columns. */
  static HeldBlock of(Column[] columns, int[] chosen, int count) {
    Column.Copy[] copies = Arrays.stream(columns).map(each -> each.copy(chosen, count)).toArray(Column.Copy[]::new);
    long size = Arrays.stream(copies).mapToLong(each -> each.size() + OF_EACH_COLUMN).sum();
    return new HeldBlock(count, copies, null, size);
  }

  static HeldBlock of(AppendTally tally) {
    return new HeldBlock(0, new Column.Copy[0], tally, SizeEstimator.estimate(tally));
  }
}
