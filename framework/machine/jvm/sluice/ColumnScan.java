package sluice;

import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.execution.datasources.v2.DataSourceRDD;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.immutable.Map$;

/** A scan whose batches have columns of ours ({@link Column}), of which each task fills the same ones again and again. */
abstract class ColumnScan implements ScanBuilder, Scan, Batch, SupportsPushDownRequiredColumns {
  private final String description;
  private final int width;
  private StructType wanted;

  ColumnScan(String description, StructType schema) {
    this.description = description;
    width = schema.length();
    wanted = schema;
  }

  /** What Spark reads by such scans. `sizes` are of the messages that it reads, null where it reads none. */
  record Table(String name, StructType schema, Function<StructType, ColumnScan> scan, MessageSizes sizes)
      implements org.apache.spark.sql.connector.catalog.Table, SupportsRead {
    @Override
    @SuppressWarnings("deprecation") // Spark calls this one
    public StructType schema() {
      return schema;
    }

    @Override
    public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      return scan.apply(schema);
    }
  }

  /** Makes what reads the part of one task. */
  abstract static class Readers implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition task) {
      throw new UnsupportedOperationException("columns are not read as rows");
    }

    @Override
    public boolean supportColumnarReads(InputPartition task) {
      return true;
    }
  }

  /** The batches, as Spark reads them. */
  @SuppressWarnings("unchecked")
  final JavaRDD<ColumnarBatch> batches(SparkContext context) {
    var tasks = Arrays.stream(planInputPartitions()).map(ScalaList::of).toArray(scala.collection.immutable.Seq[]::new);
    var rows = new DataSourceRDD(context, ScalaList.of(tasks), createReaderFactory(), true, Map$.MODULE$.empty());
    return (JavaRDD<ColumnarBatch>) (Object) rows.toJavaRDD(); // which Spark says are rows
  }

  /** Leaves out whole columns. Spark would also leave out fields inside structs, whose values are found by their places. */
  @Override
  public void pruneColumns(StructType required) {
    List<String> names = List.of(required.fieldNames());
    wanted = new StructType(names.stream().map(wanted::apply).toArray(StructField[]::new));
  }

  boolean isPruned() {
    return wanted.length() < width;
  }

  @Override
  public Scan build() {
    return this;
  }

  @Override
  public StructType readSchema() {
    return wanted;
  }

  @Override
  public String description() {
    return description;
  }

  @Override
  public Batch toBatch() {
    return this;
  }

  @Override
  public ColumnarSupportMode columnarSupportMode() {
    return ColumnarSupportMode.SUPPORTED;
  }
}
