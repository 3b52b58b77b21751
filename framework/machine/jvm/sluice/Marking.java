package sluice;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.BaseRowDelta;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataOperations;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestReader;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotRef;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.util.ContentFileUtil;
import org.apache.iceberg.util.SnapshotUtil;

/**
 * A commit that marks rows as deleted. A file of which no row would be left is removed instead: each later batch would open it, and its
 * marks, for nothing. Totals of a few groups would leave such a file with each batch.
 *
 * <p>So it is with marks of format 3, of which each says how many different rows it has, and where one task marks all rows of a file, as
 * Spark plans it by itself.
 */
final class Marking extends BaseRowDelta {
  private static final long MOST = 1 << 20; // bytes of lists of files that are read for it
  private static final List<String> COLUMNS =
      List.of("content", "file_path", "file_format", "partition", "record_count", "file_size_in_bytes");

  private final TableOperations operations;
  private final Map<String, DeleteFile> marks = new HashMap<>(); // by the file whose rows they mark
  private final Set<String> needed = new HashSet<>(); // files of marks
  private final Set<CharSequence> mustExist = new HashSet<>();
  private String branch = SnapshotRef.MAIN_BRANCH;

  Marking(String table, TableOperations operations) {
    super(table, operations);
    this.operations = operations;
  }

  @Override
  public RowDelta toBranch(String name) {
    branch = name;
    return super.toBranch(name);
  }

  @Override
  public RowDelta addDeletes(DeleteFile added) {
    if (ContentFileUtil.isDV(added) && marks.putIfAbsent(added.referencedDataFile(), added) == null) {
      return this;
    }
    return addForGood(added);
  }

  private RowDelta addForGood(DeleteFile added) {
    needed.add(added.location());
    return super.addDeletes(added);
  }

  @Override
  public RowDelta validateDataFilesExist(Iterable<? extends CharSequence> files) {
    files.forEach(mustExist::add);
    return this;
  }

  @Override
  protected String operation() {
    return deletesDataFiles() && !addsDataFiles() ? DataOperations.DELETE : super.operation();
  }

  @Override
  public void commit() {
    Set<String> needless = new HashSet<>();
    for (DataFile empty : empty()) {
      removeRows(empty);
      mustExist.remove(empty.location());
      needless.add(marks.remove(empty.location()).location());
    }
    marks.values().forEach(this::addForGood);
    super.validateDataFilesExist(mustExist);
    super.commit();
    needless.removeAll(needed); // one file has the marks of many
    needless.forEach(location -> ColumnFile.delete(operations.io(), location));
  }

  /** The files of which no row would be left. */
  private Iterable<DataFile> empty() {
    Snapshot before = SnapshotUtil.latestSnapshot(operations.current(), branch);
    if (before == null || marks.isEmpty()) {
      return List.of();
    }
    Map<String, DataFile> empty = new HashMap<>(); // a table that was adopted can have a file twice
    long left = MOST;
    for (ManifestFile list : before.dataManifests(operations.io())) {
      if (list.length() <= left) {
        left -= list.length();
        addEmpty(list, empty);
      }
    }
    return empty.values();
  }

  private void addEmpty(ManifestFile list, Map<String, DataFile> empty) {
    try (ManifestReader<DataFile> files = ManifestFiles.read(list, operations.io(), operations.current().specsById()).select(COLUMNS)) {
      for (DataFile file : files) {
        DeleteFile mark = marks.get(file.location());
        if (mark != null && mark.recordCount() == file.recordCount()) {
          empty.put(file.location(), file);
        }
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
