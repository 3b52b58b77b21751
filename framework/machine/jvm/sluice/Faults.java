package sluice;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.spark.sql.Row;

/** The faults of bad rows that travel with a batch. */
public final class Faults {
  private Faults() {}

  /** How often each fault is there: `3:12,5:1`. Py4J takes as long for each item of a list as for this text. */
  public static String counts(List<Row> badRows) {
    Map<Integer, Long> counts = badRows.stream().collect(Collectors.groupingBy(row -> row.getInt(0), TreeMap::new, Collectors.counting()));
    return counts.entrySet().stream().map(entry -> entry.getKey() + ":" + entry.getValue()).collect(Collectors.joining(","));
  }
}
