package sluice;

import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.stream.IntStream;
import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.TaskLocation;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.jdk.javaapi.CollectionConverters;

/** A scan of rows that are held ({@link Held}). A part that is not there any more, as its machine is lost, is computed again. */
final class HeldScan extends ColumnScan {
  private final StructType schema;
  private final RDD<HeldBlock> blocks;

  HeldScan(StructType columns, StructType schema, RDD<HeldBlock> blocks) {
    super("held rows", columns);
    this.schema = schema;
    this.blocks = blocks;
  }

  private record Part(RDD<HeldBlock> all, Partition partition) implements InputPartition {
    /** Asked when tasks begin, since Spark knows only then which executors hold the blocks. */
    @Override
    public String[] preferredLocations() {
      List<TaskLocation> locations = ScalaList.toJava(all.sparkContext().getPreferredLocs(all, partition.index()));
      return locations.stream().map(TaskLocation::toString).toArray(String[]::new);
    }

    Iterator<HeldBlock> blocks() {
      return CollectionConverters.asJava(all.iterator(partition, TaskContext.get()));
    }
  }

  void release() {
    blocks.unpersist(false);
  }

  @Override
  public InputPartition[] planInputPartitions() {
    return Arrays.stream(blocks.partitions()).map(each -> new Part(blocks, each)).toArray(InputPartition[]::new);
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new HeldReaders(readSchema(), Arrays.stream(readSchema().fieldNames()).mapToInt(schema::fieldIndex).toArray());
  }

  private static final class HeldReaders extends Readers {
    private final StructType wanted;
    private final int[] places;

    HeldReaders(StructType wanted, int[] places) {
      this.wanted = wanted;
      this.places = places;
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition part) {
      return new Reader(wanted, places, ((Part) part).blocks());
    }
  }

  /** The rows of blocks, each in the same object as the one before. */
  static Iterator<InternalRow> rows(StructType schema, Iterator<HeldBlock> blocks) {
    Reader reader = new Reader(schema, IntStream.range(0, schema.length()).toArray(), blocks);
    return new Iterator<>() {
      private Iterator<InternalRow> rows = Collections.emptyIterator();

      @Override
      public boolean hasNext() {
        while (!rows.hasNext() && reader.next()) {
          rows = reader.get().rowIterator();
        }
        return rows.hasNext();
      }

      @Override
      public InternalRow next() {
        if (!hasNext()) {
          throw new NoSuchElementException();
        }
        return rows.next();
      }
    };
  }

  private static final class Reader implements PartitionReader<ColumnarBatch> {
    private final int[] places;
    private final Iterator<HeldBlock> blocks;
    private final Column[] columns;
    private final ColumnarBatch batch;

    Reader(StructType wanted, int[] places, Iterator<HeldBlock> blocks) {
      this.places = places;
      this.blocks = blocks;
      columns = Arrays.stream(wanted.fields()).map(each -> Column.of(each.dataType(), Consumers.MOST_MESSAGES)).toArray(Column[]::new);
      batch = new ColumnarBatch(columns);
    }

    @Override
    public boolean next() {
      HeldBlock block = null;
      while (blocks.hasNext() && (block == null || block.rows() == 0)) {
        block = blocks.next();
      }
      if (block == null || block.rows() == 0) {
        return false;
      }
      for (int at = 0; at < columns.length; at++) {
        columns[at].show(block.columns()[places[at]]);
      }
      batch.setNumRows(block.rows());
      return true;
    }

    @Override
    public ColumnarBatch get() {
      return batch;
    }

    @Override
    public void close() {}
  }
}
