package sluice;

import java.util.Arrays;
import org.apache.iceberg.FieldMetrics;
import org.apache.iceberg.shaded.org.apache.parquet.column.statistics.Statistics;
import org.apache.iceberg.shaded.org.apache.parquet.io.api.Binary;
import org.apache.iceberg.shaded.org.apache.parquet.schema.PrimitiveType;
import org.apache.iceberg.shaded.org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;

/**
 * The least and the greatest value of a column: of each page, for Parquet, and of real numbers of the whole file, for Iceberg, which wants
 * to know them without NaN.
 */
final class ColumnBounds {
  private static final long NAN = Double.doubleToLongBits(Double.NaN); // greater than all others, as in `Double.compare`
  private static final int FLOAT_NAN = Float.floatToIntBits(Float.NaN);

  private final PrimitiveType type;
  private final PrimitiveTypeName physical;
  private final boolean isKept;
  private final boolean isReal;

  // of the page; real numbers as whole ones of the same order
  private long least;
  private long greatest;
  private boolean isEmpty = true;
  private boolean hasNan;
  private byte[] leastText;
  private byte[] greatestText;

  // of the file
  private long leastOfFile = Long.MAX_VALUE;
  private long greatestOfFile = Long.MIN_VALUE;
  private long nans;
  private long values;
  private long nulls;

  /** Masked columns have none: `isKept` is false. */
  ColumnBounds(PrimitiveType type, boolean isKept) {
    this.type = type;
    this.isKept = isKept;
    physical = type.getPrimitiveTypeName();
    isReal = physical == PrimitiveTypeName.FLOAT || physical == PrimitiveTypeName.DOUBLE;
  }

  /** Counts values that are no numbers; all values have to be counted. */
  void countNans(long[] numbers, int count) {
    for (int at = 0; isReal && at < count; at++) {
      nans += isNan(numbers[at]) ? 1 : 0;
    }
  }

  void add(long[] numbers, int count) {
    for (int at = 0; at < count; at++) {
      add(numbers[at]);
    }
  }

  /** Takes a value into account; one of equal ones is enough for a page. */
  void add(long bits) {
    if (isReal && isNan(bits)) {
      hasNan = true;
      return;
    }
    long number = isReal ? ordered(bits) : bits;
    if (isEmpty || number < least) {
      least = number;
    }
    if (isEmpty || number > greatest) {
      greatest = number;
    }
    isEmpty = false;
  }

  void add(byte[] bytes, int from, int length) {
    if (leastText == null || Arrays.compareUnsigned(bytes, from, from + length, leastText, 0, leastText.length) < 0) {
      leastText = Arrays.copyOfRange(bytes, from, from + length);
    }
    if (greatestText == null || Arrays.compareUnsigned(bytes, from, from + length, greatestText, 0, greatestText.length) > 0) {
      greatestText = Arrays.copyOfRange(bytes, from, from + length);
    }
  }

  private boolean isNan(long bits) {
    return physical == PrimitiveTypeName.DOUBLE ? Double.isNaN(Double.longBitsToDouble(bits)) : Float.isNaN(Float.intBitsToFloat((int) bits));
  }

  /** A whole number of the same order; the same function leads back. */
  private long ordered(long bits) {
    if (physical == PrimitiveTypeName.DOUBLE) {
      return bits ^ bits >> Long.SIZE - 1 & Long.MAX_VALUE;
    }
    int whole = (int) bits;
    return whole ^ whole >> Integer.SIZE - 1 & Integer.MAX_VALUE;
  }

  /** The statistics of a page with so many values. */
  Statistics<?> endPage(int count, int nullCount) {
    values += count;
    nulls += nullCount;
    if (isReal && !isEmpty) {
      leastOfFile = Math.min(leastOfFile, least);
      greatestOfFile = Math.max(greatestOfFile, greatest);
    }
    Statistics<?> statistics = isKept ? statistics(nullCount) : Statistics.noopStats(type);
    isEmpty = true;
    hasNan = false;
    leastText = null;
    greatestText = null;
    return statistics;
  }

  private Statistics<?> statistics(int nullCount) {
    Statistics<?> statistics = Statistics.createStats(type);
    statistics.incrementNumNulls(nullCount);
    if (leastText != null) {
      statistics.updateStats(Binary.fromConstantByteArray(leastText));
      statistics.updateStats(Binary.fromConstantByteArray(greatestText));
    }
    if (!isEmpty) {
      update(statistics, isReal ? ordered(least) : least);
      update(statistics, isReal ? ordered(greatest) : greatest);
    }
    if (hasNan) { // then Parquet drops both bounds, of the whole row group
      update(statistics, physical == PrimitiveTypeName.DOUBLE ? NAN : FLOAT_NAN);
    }
    return statistics;
  }

  private void update(Statistics<?> statistics, long bits) {
    switch (physical) {
      case BOOLEAN -> statistics.updateStats(bits != 0);
      case INT32 -> statistics.updateStats((int) bits);
      case FLOAT -> statistics.updateStats(Float.intBitsToFloat((int) bits));
      case DOUBLE -> statistics.updateStats(Double.longBitsToDouble(bits));
      default -> statistics.updateStats(bits);
    }
  }

  /** What Iceberg wants to know of a column of real numbers; null for others, of which it takes what Parquet knows. */
  FieldMetrics<?> metrics() {
    int id = type.getId().intValue();
    if (!isReal) {
      return null;
    }
    if (leastOfFile > greatestOfFile) {
      return new FieldMetrics<>(id, values + nulls, nulls, nans);
    }
    long low = ordered(leastOfFile);
    long high = ordered(greatestOfFile);
    return physical == PrimitiveTypeName.DOUBLE
        ? new FieldMetrics<>(id, values + nulls, nulls, nans, Double.longBitsToDouble(low), Double.longBitsToDouble(high))
        : new FieldMetrics<>(id, values + nulls, nulls, nans, Float.intBitsToFloat((int) low), Float.intBitsToFloat((int) high));
  }
}
