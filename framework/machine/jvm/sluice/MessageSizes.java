package sluice;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.util.AccumulatorV2;
import scala.collection.Iterator;

/**
 * The bytes of keys and values of messages that tasks have read, by their range.
 *
 * <p>A range counts once: a task that fails is started again, and where rows are compared with one another, or a batch is staged in two
 * passes, all messages are read twice.
 */
public final class MessageSizes extends AccumulatorV2<Map.Entry<MessageSource.Offsets, Long>, Map<MessageSource.Offsets, Long>> {
  private static final long serialVersionUID = 1;

  private final HashMap<MessageSource.Offsets, Long> sizes = new HashMap<>();

  /** Those of a source that is about to be read. */
  static MessageSizes begun() {
    MessageSizes sizes = new MessageSizes();
    SparkContext.getOrCreate().register(sizes);
    return sizes;
  }

  /** The bytes of all messages that were read for a frame, and for others that were made of it. */
  public static long of(Dataset<?> frame) {
    long sum = 0;
    Iterator<LogicalPlan> leaves = frame.queryExecution().analyzed().collectLeaves().iterator();
    while (leaves.hasNext()) {
      if (leaves.next() instanceof DataSourceV2Relation relation
          && relation.table() instanceof ColumnScan.Table table
          && table.sizes() != null) {
        sum += table.sizes().sum();
      }
    }
    return sum;
  }

  private synchronized long sum() {
    return sizes.values().stream().mapToLong(Long::longValue).sum();
  }

  @Override
  public synchronized void add(Map.Entry<MessageSource.Offsets, Long> size) {
    sizes.merge(size.getKey(), size.getValue(), Math::max);
  }

  @Override
  public void merge(AccumulatorV2<Map.Entry<MessageSource.Offsets, Long>, Map<MessageSource.Offsets, Long>> other) {
    other.value().entrySet().forEach(this::add);
  }

  @Override
  public synchronized Map<MessageSource.Offsets, Long> value() {
    return new HashMap<>(sizes);
  }

  @Override
  public synchronized boolean isZero() {
    return sizes.isEmpty();
  }

  @Override
  public synchronized MessageSizes copy() {
    MessageSizes copy = new MessageSizes();
    copy.sizes.putAll(sizes);
    return copy;
  }

  @Override
  public synchronized void reset() {
    sizes.clear();
  }
}
