package sluice;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.PartitionField;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.expressions.UnboundTerm;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.transforms.Transform;
import org.apache.iceberg.types.Types.StructType;
import org.apache.iceberg.util.StructLikeWrapper;

/**
 * The partitions whose files are worth compacting first: those into which nothing was written for longest, up to a number of bytes.
 * Into the others comes more, so what is compacted there is soon compacted again.
 */
public final class ColdPartitions {
  private static final class Partition {
    StructLike values;
    long bytes;
    long newest;
    int files;
    boolean isMarked;

    void add(DataFile file) {
      values = file.partition();
      bytes += file.fileSizeInBytes();
      newest = Math.max(newest, file.dataSequenceNumber());
      files++;
    }
  }

  private final PartitionSpec spec;
  private final Map<StructLikeWrapper, Partition> partitions = new HashMap<>();

  private ColdPartitions(BaseTable table, long small) {
    spec = table.spec();
    StructLikeWrapper wrapper = StructLikeWrapper.forType(spec.partitionType());
    try (CloseableIterable<FileScanTask> tasks = table.newScan().planFiles()) {
      for (FileScanTask task : tasks) {
        DataFile file = task.file();
        if (file.specId() == spec.specId() && (file.fileSizeInBytes() < small || !task.deletes().isEmpty())) {
          Partition partition = partitions.computeIfAbsent(wrapper.copyFor(file.partition()), each -> new Partition());
          partition.add(file);
          partition.isMarked |= !task.deletes().isEmpty();
        }
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** A condition that holds for these partitions; null where all are meant. One partition is always meant. */
  public static Expression within(BaseTable table, long most, long small, int fewest) {
    return table.spec().isUnpartitioned() ? null : new ColdPartitions(table, small).within(most, fewest);
  }

  private Expression within(long most, int fewest) {
    List<Partition> coldest = new ArrayList<>(partitions.values());
    coldest.removeIf(each -> each.files < fewest && !each.isMarked);
    coldest.sort(Comparator.comparingLong(each -> each.newest));
    Expression chosen = Expressions.alwaysFalse();
    long bytes = 0;
    int nth = 0;
    while (nth < coldest.size() && (nth == 0 || bytes + coldest.get(nth).bytes <= most)) {
      bytes += coldest.get(nth).bytes;
      chosen = Expressions.or(chosen, condition(coldest.get(nth).values));
      nth++;
    }
    return nth == coldest.size() ? null : chosen;
  }

  private Expression condition(StructLike values) {
    StructType type = spec.partitionType();
    Expression condition = Expressions.alwaysTrue();
    for (int place = 0; place < spec.fields().size(); place++) {
      PartitionField field = spec.fields().get(place);
      if (!field.transform().isVoid()) {
        Object value = values.get(place, type.fields().get(place).type().typeId().javaClass());
        condition = Expressions.and(condition, equal(field, value));
      }
    }
    return condition;
  }

  @SuppressWarnings("unchecked")
  private Expression equal(PartitionField field, Object value) {
    String column = spec.schema().findColumnName(field.sourceId());
    if (field.transform().isIdentity()) {
      return value == null ? Expressions.isNull(column) : Expressions.equal(column, value);
    }
    UnboundTerm<Object> term = Expressions.transform(column, (Transform<?, Object>) field.transform());
    return value == null ? Expressions.isNull(term) : Expressions.equal(term, value);
  }
}
