package sluice;

import java.io.IOException;
import java.util.Map;
import java.util.UUID;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.Table;
import org.apache.iceberg.encryption.EncryptedOutputFile;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.parquet.Parquet;
import org.apache.iceberg.spark.SparkSchemaUtil;
import org.apache.iceberg.spark.data.SparkParquetWriters;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;

/** Rows that this process holds, appended to a table without a job of Spark: of few rows, the job takes most of the time. */
public final class LocalRows {
  private LocalRows() {}

  /**
   * Appends the rows to a branch, as one file; or answers false where that needs a job: Spark does not know the rows before one, or the
   * table has other columns, is partitioned, sorted, or not of Parquet.
   */
  public static boolean append(Dataset<Row> rows, Table table, String branch, Map<String, String> summary) throws IOException {
    StructType type = SparkSchemaUtil.convert(table.schema());
    if (!type.catalogString().equals(rows.schema().catalogString())
        || table.spec().isPartitioned()
        || table.sortOrder().isSorted()
        || !FileSettings.areOfParquet(table)
        || !(rows.queryExecution().optimizedPlan() instanceof LocalRelation local)) {
      return false;
    }
    AppendFiles append = table.newAppend().toBranch(branch).appendFile(file(local.data().iterator(), table, type));
    summary.forEach(append::set);
    append.commit();
    return true;
  }

  private static DataFile file(Iterator<InternalRow> rows, Table table, StructType type) throws IOException {
    OutputFileFactory files =
        OutputFileFactory.builderFor(table, 0, 0).format(FileFormat.PARQUET).operationId(UUID.randomUUID().toString()).build();
    EncryptedOutputFile place = files.newOutputFile();
    Parquet.DataWriteBuilder writing =
        Parquet.writeData(place)
            .forTable(table)
            .withSpec(table.spec())
            .createWriterFunc(parquet -> SparkParquetWriters.buildWriter(table.schema(), parquet, type));
    DataWriter<InternalRow> writer = writing.build();
    try (writer) {
      while (rows.hasNext()) {
        writer.write(rows.next());
      }
    }
    return writer.toDataFile();
  }
}
