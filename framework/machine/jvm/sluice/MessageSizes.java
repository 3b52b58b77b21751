package sluice;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.classic.SparkSession;
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

  private final ConcurrentHashMap<MessageSource.Offsets, Long> sizes = new ConcurrentHashMap<>(); // a heartbeat reads it meanwhile

  /** Those of a source that is about to be read. */
  static MessageSizes begun() {
    MessageSizes sizes = new MessageSizes();
    SparkSession.active().sparkContext().register(sizes);
    return sizes;
  }

  /** The bytes of all messages that were read for a frame, and for others that were made of it. */
  public static long of(Dataset<?> frame) {
    Set<MessageSizes> read = Collections.newSetFromMap(new IdentityHashMap<>());
    Iterator<LogicalPlan> leaves = frame.queryExecution().analyzed().collectLeaves().iterator();
    while (leaves.hasNext()) {
      if (leaves.next() instanceof DataSourceV2Relation relation
          && relation.table() instanceof ColumnScan.Table table
          && table.sizes() != null) {
        read.add(table.sizes());
      }
    }
    return read.stream().mapToLong(MessageSizes::sum).sum();
  }

  private long sum() {
    return sizes.values().stream().mapToLong(Long::longValue).sum();
  }

  @Override
  public void add(Map.Entry<MessageSource.Offsets, Long> size) {
    sizes.merge(size.getKey(), size.getValue(), Math::max);
  }

  @Override
  public void merge(AccumulatorV2<Map.Entry<MessageSource.Offsets, Long>, Map<MessageSource.Offsets, Long>> other) {
    other.value().entrySet().forEach(this::add);
  }

  @Override
  public Map<MessageSource.Offsets, Long> value() {
    return Map.copyOf(sizes);
  }

  @Override
  public boolean isZero() {
    return sizes.isEmpty();
  }

  @Override
  public MessageSizes copy() {
    MessageSizes copy = new MessageSizes();
    copy.sizes.putAll(sizes);
    return copy;
  }

  @Override
  public void reset() {
    sizes.clear();
  }
}
