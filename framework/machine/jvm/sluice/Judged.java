package sluice;

import java.io.Serializable;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/**
 * Where a row says what becomes of it: the bad row that it makes, or null; whether it is kept; the id of a schema that the plan lacks; which
 * expectations a good one does not meet; and where its message is. A place is -1 where no row says so. `carries` is whether bad rows are
 * wanted, and not only counted.
 */
record Judged(int bad, int keep, int unknown, int message, int[] unmet, boolean carries, StructType badType) implements Serializable {
  private static final String BAD = "_sluice_bad";
  private static final String UNMET = "_sluice_unmet";
  private static final List<String> NAMES = List.of(BAD, "_sluice_keep", "_sluice_unknown", "_sluice_message");

  static Judged of(StructType schema, boolean carries) {
    List<String> names = Arrays.asList(schema.fieldNames());
    int[] places = NAMES.stream().mapToInt(names::indexOf).toArray();
    int[] unmet = IntStream.range(0, names.size()).filter(at -> names.get(at).startsWith(UNMET)).toArray();
    StructType badType = places[0] < 0 ? null : (StructType) schema.apply(places[0]).dataType();
    return new Judged(places[0], places[1], places[2], places[3], unmet, carries, badType);
  }

  static boolean isJudging(String name) {
    return NAMES.contains(name) || name.startsWith(UNMET);
  }

  /** Whether the row goes to the table; else it is counted as what it is. */
  boolean isGood(InternalRow row, AppendTally tally) {
    if (bad >= 0 && !row.isNullAt(bad)) {
      tally.addBad(row, this);
      return false;
    }
    if (keep >= 0 && (row.isNullAt(keep) || !row.getBoolean(keep))) {
      tally.addFiltered();
      return false;
    }
    for (int at = 0; at < unmet.length; at++) {
      if (!row.isNullAt(unmet[at]) && row.getBoolean(unmet[at])) {
        tally.addUnmet(at, row, this);
      }
    }
    return true;
  }

  Row badRow(InternalRow row) {
    return (Row) CatalystTypeConverters.createToScalaConverter(badType).apply(row.getStruct(bad, badType.length()));
  }
}
