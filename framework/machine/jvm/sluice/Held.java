package sluice;

import java.io.Serializable;
import java.util.Arrays;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.stream.LongStream;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.storage.StorageLevel;
import org.apache.spark.unsafe.Platform;
import scala.Option;

/**
 * The rows of a frame, computed once and held in blocks of bytes, in memory or on the disk. Spark's own cache packs each column, and its
 * checkpoint makes an object of each row, which takes longer.
 */
public final class Held {
  private final JavaRDD<Block> blocks;
  private final Dataset<Row> rows;

  private Held(JavaRDD<Block> blocks, Dataset<Row> rows) {
    this.blocks = blocks;
    this.rows = rows;
  }

  /**
   * Computes them, as an execution of its own, at whose end Spark knows what was observed. The numbers of one column are kept apart, so that
   * nobody has to look for them in the rows.
   */
  public static Held of(Dataset<Row> frame, String numbers) {
    QueryExecution query = frame.queryExecution();
    return SQLExecution.withNewExecutionId(
        query,
        Option.apply("hold"),
        () -> {
          StructType schema = frame.schema();
          int place = schema.fieldIndex(numbers);
          JavaRDD<Block> blocks =
              query.toRdd().toJavaRDD().mapPartitions(each -> new Packing(each, schema, place)).persist(StorageLevel.MEMORY_AND_DISK());
          blocks.count();
          JavaRDD<InternalRow> rows = blocks.mapPartitions(each -> new Unpacking(each, schema.size()));
          SparkSession spark = (SparkSession) frame.sparkSession();
          return new Held(blocks, spark.internalCreateDataFrame(rows.rdd(), schema, false));
        });
  }

  public Hashes hashes() {
    return Hashes.of(rows.sparkSession(), blocks.map(each -> each.numbers()));
  }

  public Dataset<Row> rows() {
    return rows;
  }

  public void release() {
    blocks.unpersist(false);
  }

  /** Rows, each behind its length, and their numbers. */
  private record Block(byte[] bytes, long[] numbers) implements Serializable {
    private static final int SIZE = 4 << 20;
  }

  private static final class Packing implements Iterator<Block> {
    private final Iterator<InternalRow> rows;
    private final StructType schema;
    private final int place;
    private UnsafeProjection projection;

    Packing(Iterator<InternalRow> rows, StructType schema, int place) {
      this.rows = rows;
      this.schema = schema;
      this.place = place;
    }

    @Override
    public boolean hasNext() {
      return rows.hasNext();
    }

    @Override
    public Block next() {
      byte[] bytes = new byte[Block.SIZE];
      LongStream.Builder numbers = LongStream.builder();
      int at = 0;
      while (rows.hasNext() && at < Block.SIZE - (Block.SIZE >> 4)) {
        UnsafeRow row = unsafe(rows.next());
        numbers.add(row.getLong(place));
        int end = at + Integer.BYTES + row.getSizeInBytes();
        if (end > bytes.length) {
          bytes = Arrays.copyOf(bytes, end);
        }
        Platform.putInt(bytes, Platform.BYTE_ARRAY_OFFSET + at, row.getSizeInBytes());
        row.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET + at + Integer.BYTES);
        at = end;
      }
      return new Block(at < bytes.length ? Arrays.copyOf(bytes, at) : bytes, numbers.build().toArray());
    }

    private UnsafeRow unsafe(InternalRow row) {
      if (row instanceof UnsafeRow) {
        return (UnsafeRow) row;
      }
      if (projection == null) {
        projection = UnsafeProjection.create(schema);
      }
      return projection.apply(row);
    }
  }

  private static final class Unpacking implements Iterator<InternalRow> {
    private final Iterator<Block> blocks;
    private final UnsafeRow row;
    private byte[] bytes = new byte[0];
    private int at;

    Unpacking(Iterator<Block> blocks, int fields) {
      this.blocks = blocks;
      row = new UnsafeRow(fields);
    }

    @Override
    public boolean hasNext() {
      while (at == bytes.length && blocks.hasNext()) {
        bytes = blocks.next().bytes();
        at = 0;
      }
      return at < bytes.length;
    }

    /** Returns the same object each time, as Spark's own readers do. */
    @Override
    public InternalRow next() {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }
      int size = Platform.getInt(bytes, Platform.BYTE_ARRAY_OFFSET + at);
      row.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET + at + Integer.BYTES, size);
      at += Integer.BYTES + size;
      return row;
    }
  }
}
