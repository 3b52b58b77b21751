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

/** The files of one task: those of the table, or of each of its partitions that has rows. All are open until the task ends. */
final class TaskFiles {
  private final Table table;
  private final FileSettings settings;
  private final OutputFileFactory places;
  private final Map<PartitionKey, ColumnFiles> byPartition = new HashMap<>();
  private final List<ColumnFiles> chosen = new ArrayList<>();
  private final PartitionKey key;
  private PartitionKey lastKey;
  private ColumnFiles last; // of all rows, where the table has no partitions

  TaskFiles(Table table, int partition, long task, String operation) {
    this.table = table;
    settings = new FileSettings(table.properties());
    places = OutputFileFactory.builderFor(table, partition, task).format(FileFormat.PARQUET).operationId(operation).build();
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

  boolean arePartitioned() {
    return table.spec().isPartitioned();
  }

  /** The files of a table without partitions. */
  ColumnFiles all() {
    return last;
  }

  /** The files of the partition with these values. */
  ColumnFiles of(PartitionValues values) {
    key.partition(values);
    if (!key.equals(lastKey)) {
      lastKey = key.copy();
      ColumnFiles files = byPartition.get(lastKey);
      last = files == null ? open(lastKey) : files;
    }
    return last;
  }

  /** Says that a row of the next columns goes to these files. */
  void choose(ColumnFiles files, int row) {
    if (files.choose(row)) {
      chosen.add(files);
    }
  }

  /** Adds these rows, of which these are the columns. */
  void addChosen(Column[] columns) throws IOException {
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
