package sluice;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.BaseRowDelta;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestReader;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotRef;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.util.ContentFileUtil;
import org.apache.iceberg.util.SnapshotUtil;

/**
 * A commit that marks rows as deleted. A file of which no row would be left is removed instead: each later batch would open it, and its
 * marks, for nothing. Totals of a few groups would leave such a file with each batch.
 */
final class Marking extends BaseRowDelta {
  private static final long MOST = 1 << 20; // bytes of lists of files that are read for it; the newest files are in the first ones

  private final TableOperations operations;
  private final Map<String, DeleteFile> marks = new HashMap<>(); // by the file whose rows they mark
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
    String marked = ContentFileUtil.referencedDataFileLocation(added);
    return marked == null || marks.putIfAbsent(marked, added) != null ? super.addDeletes(added) : this;
  }

  @Override
  public RowDelta validateDataFilesExist(Iterable<? extends CharSequence> files) {
    files.forEach(mustExist::add);
    return this;
  }

  @Override
  public void commit() {
    List<DeleteFile> needless = new ArrayList<>();
    for (DataFile empty : empty()) {
      removeRows(empty);
      mustExist.remove(empty.location());
      needless.add(marks.remove(empty.location()));
    }
    marks.values().forEach(super::addDeletes);
    super.validateDataFilesExist(mustExist);
    super.commit();
    needless.stream().map(DeleteFile::location).distinct().filter(location -> !isNeeded(location)).forEach(operations.io()::deleteFile);
  }

  /** One file has the marks of many. */
  private boolean isNeeded(String location) {
    return marks.values().stream().anyMatch(mark -> mark.location().equals(location));
  }

  /** The files of which no row would be left. */
  private List<DataFile> empty() {
    List<DataFile> empty = new ArrayList<>();
    TableMetadata metadata = operations.current();
    Snapshot before = SnapshotUtil.latestSnapshot(metadata, branch);
    long left = MOST;
    for (ManifestFile list : before == null || marks.isEmpty() ? List.<ManifestFile>of() : before.dataManifests(operations.io())) {
      left -= list.length();
      if (left < 0) {
        break;
      }
      try (ManifestReader<DataFile> files = ManifestFiles.read(list, operations.io(), metadata.specsById())) {
        files.forEach(file -> {
          DeleteFile mark = marks.get(file.location());
          if (mark != null && mark.recordCount() == file.recordCount()) {
            empty.add(file);
          }
        });
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }
    return empty;
  }
}
