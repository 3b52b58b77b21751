package sluice;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.PartitionKey;
import org.apache.iceberg.Table;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;

/** The files of one task: those of the table, or of each of its partitions that has rows. All are open until the task ends. */
final class TaskFiles implements RowTaker {
  private final Table table;
  private final FileSettings settings;
  private final OutputFileFactory places;
  private final PartitionValues partition;
  private final Map<PartitionKey, ColumnFiles> byPartition = new HashMap<>();
  private final List<ColumnFiles> chosen = new ArrayList<>();
  private final PartitionKey key;
  private PartitionKey lastKey;
  private ColumnFiles last; // of all rows, where the table has no partitions

  /** `names` are the columns of the rows by which files are chosen. */
  TaskFiles(Table table, List<String> names, TaskContext task, String operation) {
    this.table = table;
    settings = new FileSettings(table.properties());
    places = 
        OutputFileFactory.builderFor(table, task.partitionId(), task.taskAttemptId()).format(FileFormat.PARQUET).operationId(operation).build();
    partition = new PartitionValues(table, names);
    key = new PartitionKey(table.spec(), table.spec().isPartitioned() ? PartitionValues.schema(table) : table.schema());
    if (table.spec().isUnpartitioned()) {
      last = open(null);
    }
  }

  private ColumnFiles open(PartitionKey partition) {
    ColumnFiles files = new ColumnFiles(table, partition, settings, places);
    byPartition.put(partition, files);
    return files;
  }

  /** The files of the partition with these values. */
  private ColumnFiles of(InternalRow values) {
    key.partition(partition.of(values));
    if (!key.equals(lastKey)) {
      lastKey = key.copy();
      ColumnFiles files = byPartition.get(lastKey);
      last = files == null ? open(lastKey) : files;
    }
    return last;
  }

  @Override
  public void choose(int row, InternalRow values) {
    ColumnFiles files = table.spec().isPartitioned() ? of(values) : last;
    if (files.choose(row)) {
      chosen.add(files);
    }
  }

  @Override
  public void addChosen(Column[] columns) throws IOException {
    for (ColumnFiles each : chosen) {
      each.addChosen(columns);
    }
    chosen.clear();
  }

  /** Ends all files. Returns them. */
  List<DataFile> end() throws IOException {
    List<DataFile> all = new ArrayList<>();
    for (ColumnFiles each : byPartition.values()) {
      all.addAll(each.end());
    }
    settings.release();
    return all;
  }

  /** Deletes all files. */
  void abort() {
    byPartition.values().forEach(ColumnFiles::abort);
    settings.release();
  }
}
