package sluice;

import java.util.TreeSet;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/**
 * The SQL function `repeats(times, landed, within)`: which rows of one key repeat another one. `times` are those of the rows in their
 * order, `landed` those of the rows in the table. A row is a repeat if its time is at most `within` from that of a row in the table, or
 * of a row before it that is no repeat itself. A row without a time is close to every other.
 */
public final class Repeats implements ScalarFunction<ArrayData> {
  static final String NAME = "repeats";

  public ArrayData invoke(ArrayData times, ArrayData inTable, long within) {
    Landed landed = new Landed(within);
    for (int at = 0; at < inTable.numElements(); at++) {
      landed.add(inTable, at);
    }
    boolean[] repeats = new boolean[times.numElements()];
    for (int at = 0; at < repeats.length; at++) {
      repeats[at] = landed.isCloseTo(times, at);
      if (!repeats[at]) {
        landed.add(times, at);
      }
    }
    return UnsafeArrayData.fromPrimitiveArray(repeats);
  }

  /** The times of the rows that landed. */
  private static final class Landed {
    private final TreeSet<Long> times = new TreeSet<>();
    private final long within;
    private boolean withoutTime;

    Landed(long within) {
      this.within = within;
    }

    void add(ArrayData from, int at) {
      if (from.isNullAt(at)) {
        withoutTime = true;
      } else {
        times.add(from.getLong(at));
      }
    }

    boolean isCloseTo(ArrayData from, int at) {
      if (withoutTime || from.isNullAt(at)) {
        return withoutTime || !times.isEmpty();
      }
      long time = from.getLong(at);
      Long before = times.floor(time);
      Long after = times.ceiling(time);
      return (before != null && isClose(before, time)) || (after != null && isClose(time, after));
    }

    /** A difference that is too large for a long is negative. */
    private boolean isClose(long earlier, long later) {
      long apart = later - earlier;
      return apart >= 0 && apart <= within;
    }
  }

  @Override
  public ArrayData produceResult(InternalRow input) {
    return invoke(input.getArray(0), input.getArray(1), input.getLong(2));
  }

  @Override
  public DataType[] inputTypes() {
    DataType times = DataTypes.createArrayType(DataTypes.LongType);
    return new DataType[] {times, times, DataTypes.LongType};
  }

  @Override
  public DataType resultType() {
    return DataTypes.createArrayType(DataTypes.BooleanType, false);
  }

  @Override
  public boolean isResultNullable() {
    return false;
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public String canonicalName() {
    return "sluice." + NAME;
  }
}
