package sluice;

import java.io.Serializable;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.LongStream;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** A set of numbers, which tasks look up by the SQL function {@link Among}. It is in memory once in each JVM: 18 to 36 bytes for a number. */
public final class Hashes {
  private static final Map<String, Hashes> BY_ID = new ConcurrentHashMap<>();
  private static final AtomicLong IDS = new AtomicLong();

  private final SparkSession spark;
  private final long[] sorted;
  private final String id = Long.toString(IDS.incrementAndGet());
  private Broadcast<Table> table;

  private Hashes(SparkSession spark, long[] sorted) {
    this.spark = spark;
    this.sorted = sorted;
    BY_ID.put(id, this);
  }

  /** Forgets the sets of a command that has ended, in whatever way. */
  static void clear() {
    BY_ID.values().forEach(Hashes::forget);
  }

  /** The numbers of the first column, each as often as it is there. */
  public static Hashes of(Dataset<Row> rows) {
    return of(
        rows.sparkSession(),
        rows.queryExecution().toRdd().toJavaRDD().mapPartitions(
            each -> {
              LongStream.Builder numbers = LongStream.builder();
              each.forEachRemaining(row -> numbers.add(row.getLong(0)));
              return List.of(numbers.build().toArray()).iterator();
            }));
  }

  static Hashes of(SparkSession spark, JavaRDD<long[]> numbers) {
    List<long[]> parts = numbers.collect();
    long[] all = new long[parts.stream().mapToInt(part -> part.length).sum()];
    int at = 0;
    for (long[] part : parts) {
      System.arraycopy(part, 0, all, at, part.length);
      at += part.length;
    }
    Arrays.parallelSort(all);
    return new Hashes(spark, all);
  }

  /** The numbers that are in the set more than once. */
  public Hashes repeated() {
    long[] found = new long[sorted.length / 2];
    int count = 0;
    for (int at = 1; at < sorted.length; at++) {
      if (sorted[at] == sorted[at - 1] && (count == 0 || found[count - 1] != sorted[at])) {
        found[count++] = sorted[at];
      }
    }
    return new Hashes(spark, Arrays.copyOf(found, count));
  }

  public Hashes and(Hashes others) {
    long[] all = LongStream.concat(Arrays.stream(sorted), Arrays.stream(others.sorted)).sorted().toArray();
    return new Hashes(spark, all);
  }

  public int size() {
    return sorted.length;
  }

  /** How many of these are among the others, each as often as it is here. */
  public int among(Hashes others) {
    int count = 0;
    int other = 0;
    for (long number : sorted) {
      while (other < others.sorted.length && others.sorted[other] < number) {
        other++;
      }
      count += other < others.sorted.length && others.sorted[other] == number ? 1 : 0;
    }
    return count;
  }

  /** The id by which SQL names the set. */
  public String id() {
    return id;
  }

  public void forget() {
    BY_ID.remove(id);
    if (table != null) {
      table.destroy();
    }
  }

  private synchronized Broadcast<Table> table() {
    if (table == null) {
      table = JavaSparkContext.fromSparkContext(spark.sparkContext()).broadcast(new Table(sorted));
    }
    return table;
  }

  static Broadcast<Table> table(String id) {
    Hashes hashes = BY_ID.get(id);
    if (hashes == null) {
      throw new IllegalStateException("the set of hashes " + id + " is not there any more");
    }
    return hashes.table();
  }

  /**
   * Open addressing. Numbers that follow one another are spread. One bit of each number, all of which fit into a processor's cache, say of
   * most others that they are not there.
   */
  static final class Table implements Serializable {
    private static final long SPREAD = 0x9E3779B97F4A7C15L;
    private static final int BITS = 16; // for each number

    private final long[] slots;
    private final long[] bits;
    private final int shift; // to the number of a bit
    private final boolean hasZero;

    Table(long[] numbers) {
      if (numbers.length >= 1 << 28) {
        throw new IllegalArgumentException(numbers.length + " rows of one batch are too many to be compared: take a smaller batch");
      }
      int size = Integer.highestOneBit(Math.max(1, numbers.length)) * 2;
      slots = new long[size * 2];
      bits = new long[Math.max(1, size / (Long.SIZE / BITS))];
      shift = Long.numberOfLeadingZeros(bits.length * (long) Long.SIZE) + 1;
      boolean zero = false;
      for (long number : numbers) {
        zero |= number == 0;
        slots[place(number)] = number;
        bits[bit(number) >>> 6] |= 1L << bit(number);
      }
      hasZero = zero;
    }

    boolean has(long number) {
      if ((bits[bit(number) >>> 6] & 1L << bit(number)) == 0) {
        return false;
      }
      return number == 0 ? hasZero : slots[place(number)] == number;
    }

    private int bit(long number) {
      return (int) (number * SPREAD >>> shift);
    }

    private int place(long number) {
      int at = (int) (number * SPREAD >>> 32) & slots.length - 1;
      while (slots[at] != 0 && slots[at] != number) {
        at = at + 1 & slots.length - 1;
      }
      return at;
    }
  }
}
