package sluice;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.MetadataColumns;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableScan;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Types.NestedField;
import org.apache.iceberg.util.SnapshotUtil;
import org.apache.spark.sql.classic.SparkSession;

/**
 * The files in which two snapshots of a table differ, for Spark to read. A file of both snapshots in which the same rows are marked
 * as deleted has no changes and is not read.
 */
public final class ChangedFiles {
  private static final String PREFIX = "sluice-changes-";

  private final Table table;
  private final String name;
  private final List<FileScanTask> begun = new ArrayList<>();
  private final List<FileScanTask> ended = new ArrayList<>();
  private final List<FileScanTask> marked = new ArrayList<>();
  private final List<FileScanTask> markedBefore = new ArrayList<>();
  private final boolean grows; // the later snapshot comes from the earlier one, whose marks it keeps
  private final long sinceSequence;
  private final long nextRow;
  private long gone;

  /** Between two snapshots; a `since` of -1 is the empty table. */
  public ChangedFiles(BaseTable table, long since, long until) {
    this.table = table;
    this.name = ofSession() + table.uuid() + "-" + since + "-" + until + "-";
    this.grows = since == -1 || SnapshotUtil.isAncestorOf(until, since, table::snapshot);
    this.sinceSequence = since == -1 ? -1 : table.snapshot(since).sequenceNumber();
    this.nextRow = since == -1 ? 0 : nextRow(table.snapshot(since));
    Map<String, FileScanTask> before = since == -1 ? new HashMap<>() : files(table.newScan().useSnapshot(since));
    files(table.newScan().useSnapshot(until).includeColumnStats()).forEach((location, now) -> compare(before.remove(location), now));
    before.values().forEach(this::end);
  }

  /** What this session stages: another one, whose thread reads the same table, goes on with its own. */
  private static String ofSession() {
    return of((SparkSession) SparkSession.active());
  }

  private static String of(SparkSession session) {
    return PREFIX + session.sessionUUID() + "-";
  }

  /** Forgets all that a session has staged, which has ended. */
  public static void forget(SparkSession session) {
    StagedFiles.forgetAll(of(session));
  }

  private void compare(FileScanTask before, FileScanTask now) {
    if (before == null) {
      begun.add(now);
    } else if (!deletes(before).equals(deletes(now))) {
      marked.add(now);
      gone += markedRows(now) - (grows ? markedRows(before) : 0);
      if (!before.deletes().isEmpty()) {
        markedBefore.add(before);
      }
    }
  }

  private void end(FileScanTask before) {
    ended.add(before);
    gone += before.file().recordCount() - markedRows(before);
  }

  private static long nextRow(Snapshot snapshot) {
    return snapshot.firstRowId() == null ? 0 : snapshot.firstRowId() + snapshot.addedRows();
  }

  /** Files of the later snapshot alone, which Spark reads as a table of this name; null where there are none. */
  public String begun() {
    return stage("begun", begun);
  }

  /** Files of the earlier snapshot alone. */
  public String ended() {
    return stage("ended", ended);
  }

  /** Files of both in which other rows are marked as deleted, as they are in the later snapshot. */
  public String marked() {
    return stage("marked", marked);
  }

  /** The same files as they were in the earlier snapshot, as far as rows were marked then. */
  public String markedBefore() {
    return stage("marked-before", markedBefore);
  }

  /** Whether the later snapshot comes from the earlier one. */
  public boolean grows() {
    return grows;
  }

  /** The first id of rows that came after the earlier snapshot. */
  public long nextRow() {
    return nextRow;
  }

  /** How many rows there are no more where they were; exactly so where the later snapshot comes from the earlier one. */
  public long gone() {
    return gone;
  }

  /**
   * How many rows of files of the later snapshot alone there were before, by the bounds of their ids, which only grow; -1 where
   * these do not say it.
   */
  public long remaining() {
    long remaining = 0;
    for (FileScanTask task : begun) {
      long rows = valuesUpTo(task, MetadataColumns.ROW_ID, nextRow - 1);
      if (rows < 0) {
        return -1;
      }
      remaining += rows;
    }
    return remaining;
  }

  /** How many of the rows of these files were only moved; -1 where it is not known. */
  public long moved() {
    long moved = 0;
    for (FileScanTask task : begun) {
      long rows = valuesUpTo(task, MetadataColumns.LAST_UPDATED_SEQUENCE_NUMBER, sinceSequence);
      if (rows < 0) {
        return -1;
      }
      moved += rows;
    }
    return moved;
  }

  /**
   * How many values a file has in a column of its own for ids, if all of them or none are below a bound; else -1. So it is where rows are
   * marked as deleted, of which statistics know nothing.
   */
  private static long valuesUpTo(FileScanTask task, NestedField column, long bound) {
    DataFile file = task.file();
    int id = column.fieldId();
    if (file.valueCounts() == null || !file.valueCounts().containsKey(id) || !file.nullValueCounts().containsKey(id)) {
      return -1;
    }
    long values = file.valueCounts().get(id) - file.nullValueCounts().get(id);
    if (values == 0) {
      return 0;
    }
    Long least = bound(file.lowerBounds(), column);
    Long greatest = bound(file.upperBounds(), column);
    if (least == null || greatest == null) {
      return -1;
    }
    return least > bound ? 0 : greatest <= bound && task.deletes().isEmpty() ? values : -1;
  }

  private static Long bound(Map<Integer, ByteBuffer> bounds, NestedField column) {
    ByteBuffer bound = bounds == null ? null : bounds.get(column.fieldId());
    return bound == null ? null : Conversions.fromByteBuffer(column.type(), bound);
  }

  /** How many rows the files of the later snapshot alone have. */
  public long begunRows() {
    return begun.stream().mapToLong(task -> task.file().recordCount()).sum();
  }

  /** The number of the commit of the earlier snapshot. */
  public long sinceSequence() {
    return sinceSequence;
  }

  /** The largest number of rows that can differ. */
  public long rows() {
    return gone + begunRows() + (grows ? 0 : markedBefore.stream().mapToLong(ChangedFiles::markedRows).sum());
  }

  /** Forgets what this session staged of the table for other snapshots: nothing reads it any more. */
  public void forgetOthers() {
    StagedFiles.forget(table, ofSession(), name);
  }

  private String stage(String part, List<FileScanTask> tasks) {
    if (tasks.isEmpty()) {
      return null;
    }
    StagedFiles.stage(table, name + part, tasks);
    return name + part;
  }

  private static Map<String, FileScanTask> files(TableScan scan) {
    Map<String, FileScanTask> found = new HashMap<>();
    try (CloseableIterable<FileScanTask> tasks = scan.planFiles()) {
      tasks.forEach(task -> found.put(task.file().location(), task));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return found;
  }

  private static Set<String> deletes(FileScanTask task) {
    Set<String> found = new HashSet<>();
    task.deletes().forEach(each -> found.add(each.location() + "@" + each.contentOffset()));
    return found;
  }

  private static long markedRows(FileScanTask task) {
    return task.deletes().stream().mapToLong(DeleteFile::recordCount).sum();
  }
}
