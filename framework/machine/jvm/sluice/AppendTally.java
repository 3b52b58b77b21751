package sluice;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.DataFile;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;

/** The files of a task, or of all tasks, and what became of the rows that were read. Py4J asks for the numbers. */
public final class AppendTally implements Serializable {
  final List<DataFile> files = new ArrayList<>();
  private final List<Row> carried = new ArrayList<>();
  private final Set<Long> unknown = new HashSet<>();
  private final Map<Integer, Unmet> unmet = new HashMap<>();
  private long read;
  private long filtered;
  private long bad;
  private long tooLarge;

  AppendTally() {}

  /** Where a message is in its topic. */
  private record Place(int partition, long offset) implements Serializable, Comparable<Place> {
    @Override
    public int compareTo(Place other) {
      return partition == other.partition ? Long.compare(offset, other.offset) : Integer.compare(partition, other.partition);
    }
  }

  /** Rows that do not meet an expectation: how many, and the first and the last of their messages. */
  private static final class Unmet implements Serializable {
    private long rows;
    private Place first;
    private Place last;

    void add(Place place) {
      rows++;
      widen(place);
    }

    void add(Unmet other) {
      rows += other.rows;
      widen(other.first);
      widen(other.last);
    }

    private void widen(Place place) {
      if (place != null) {
        first = first == null || place.compareTo(first) < 0 ? place : first;
        last = last == null || place.compareTo(last) > 0 ? place : last;
      }
    }
  }

  void addRead(long count) {
    read += count;
  }

  void addFiltered() {
    filtered++;
  }

  /** Counts a bad row, and carries it. The row has what was judged: see {@link Judged}. */
  void addBad(InternalRow row, Judged judged) {
    bad++;
    if (judged.carries()) {
      Row copy = judged.badRow(row);
      carried.add(copy);
      tooLarge += copy.getBoolean(copy.length() - 1) ? 1 : 0;
    }
    if (judged.unknown() >= 0 && !row.isNullAt(judged.unknown())) {
      unknown.add(row.getLong(judged.unknown()));
    }
  }

  /** Counts a good row that does not meet the expectation of this number. */
  void addUnmet(int expectation, InternalRow row, Judged judged) {
    InternalRow message = judged.message() < 0 ? null : row.getStruct(judged.message(), 2);
    unmet.computeIfAbsent(expectation, any -> new Unmet()).add(message == null ? null : new Place(message.getInt(0), message.getLong(1)));
  }

  void add(AppendTally other) {
    other.unmet.forEach((expectation, rows) -> unmet.computeIfAbsent(expectation, any -> new Unmet()).add(rows));
    files.addAll(other.files);
    carried.addAll(other.carried);
    unknown.addAll(other.unknown);
    read += other.read;
    filtered += other.filtered;
    bad += other.bad;
    tooLarge += other.tooLarge;
  }

  public long read() {
    return read;
  }

  public long filtered() {
    return filtered;
  }

  public long bad() {
    return bad;
  }

  /** Bad rows that were carried without their bytes. */
  public long tooLarge() {
    return tooLarge;
  }

  public List<Row> carried() {
    return carried;
  }

  public long unmet(int expectation) {
    return unmet.containsKey(expectation) ? unmet.get(expectation).rows : 0;
  }

  /** The partitions and offsets of the first and the last message whose rows do not meet an expectation; empty where nobody knows them. */
  public List<Long> places(int expectation) {
    Unmet rows = unmet.get(expectation);
    return rows.first == null
        ? List.of()
        : List.of((long) rows.first.partition, rows.first.offset, (long) rows.last.partition, rows.last.offset);
  }

  /** Ids of schemas that the registry has not been asked for. */
  public List<Long> unknown() {
    return List.copyOf(unknown);
  }
}
