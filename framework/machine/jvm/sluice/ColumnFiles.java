package sluice;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.PartitionKey;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.util.PropertyUtil;

/** The files of one task for one partition, or for a table that has none: a new one begins where one has the size that the table wants. */
final class ColumnFiles {
  private static final int CHECK_ROWS = 100; // behind so many rows the sizes are looked at: each can have megabytes

  private final Table table;
  private final PartitionKey partition; // null: the table has none
  private final FileSettings settings;
  private final OutputFileFactory places;
  private final long targetSize;
  private final List<DataFile> done = new ArrayList<>();
  private ColumnFile file; // null: none has begun
  private int rows; // since the sizes were looked at
  private final ChosenRows chosen = new ChosenRows();

  ColumnFiles(Table table, PartitionKey partition, FileSettings settings, OutputFileFactory places) {
    this.table = table;
    this.partition = partition;
    this.settings = settings;
    this.places = places;
    targetSize =
        PropertyUtil.propertyAsLong(
            table.properties(), TableProperties.WRITE_TARGET_FILE_SIZE_BYTES, TableProperties.WRITE_TARGET_FILE_SIZE_BYTES_DEFAULT);
  }

  /** Says that a row of the next columns goes to these files. Returns whether it is the first one. */
  boolean choose(int row) {
    chosen.add(row);
    return chosen.count() == 1;
  }

  /** Adds these rows, of which these are the columns. */
  void addChosen(Column[] columns) throws IOException {
    if (file == null) {
      file = new ColumnFile(table, partition, partition == null ? places.newOutputFile() : places.newOutputFile(partition), settings);
    }
    for (int at = 0; at < columns.length; at++) {
      columns[at].addTo(file.columns()[at], chosen.rows(), chosen.count());
    }
    rows += chosen.count();
    chosen.clear();
    if (rows >= CHECK_ROWS) {
      file.added(rows);
      rows = 0;
      if (file.size() >= targetSize) {
        endFile();
      }
    }
  }

  private void endFile() throws IOException {
    done.add(file.end());
    file = null;
  }

  /** Ends the last file. Returns all of them. */
  List<DataFile> end() throws IOException {
    if (rows > 0) {
      file.added(rows);
    }
    if (file != null) {
      endFile();
    }
    return done;
  }

  /** Deletes all files. */
  void abort() {
    if (file != null) {
      file.abort();
    }
    done.forEach(each -> ColumnFile.delete(table.io(), each.location()));
  }
}
