package sluice;

import java.io.IOException;
import java.io.Serializable;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.NullOrder;
import org.apache.iceberg.SortDirection;
import org.apache.iceberg.SortField;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.encryption.PlaintextEncryptionManager;
import org.apache.iceberg.exceptions.CleanableFailure;
import org.apache.iceberg.spark.SparkSchemaUtil;
import org.apache.iceberg.spark.source.SerializableTableWithSize;
import org.apache.iceberg.types.Types.NestedField;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.CollectionAccumulator;
import scala.Option;

/**
 * Appends rows to a branch of a table, in files that are made of columns. Each row says itself what becomes of it ({@link Judged}), so that
 * one pass over the rows writes the good ones, counts all, and brings the bad ones along.
 */
public final class ColumnAppend {
  private ColumnAppend() {}

  /** Why Iceberg's own writer has to append to the table; empty where it has not to. */
  public static String refusal(Table table) {
    if (table.sortOrder().fields().stream().anyMatch(each -> !each.transform().isIdentity())) {
      return "the table is sorted by what is computed of a column";
    }
    if (table.spec().fields().stream().anyMatch(each -> table.schema().findField(each.sourceId()) == null)) {
      return "the table is partitioned by a column that it no longer has";
    }
    if (table.spec().isPartitioned() && !"none".equals(table.properties().get(TableProperties.WRITE_DISTRIBUTION_MODE))) {
      return "the table wants the rows of a partition in one task";
    }
    if (!FileSettings.areOfParquet(table)) {
      return "the table's files are not of Parquet";
    }
    if (table.properties().keySet().stream().anyMatch(each -> each.startsWith(TableProperties.PARQUET_BLOOM_FILTER_COLUMN_ENABLED_PREFIX))) {
      return "the table wants Bloom filters";
    }
    if (!(table.encryption() instanceof PlaintextEncryptionManager)) {
      return "the table is encrypted";
    }
    if (table.schema().columns().stream().anyMatch(column -> column.isRequired() || column.writeDefault() != null)) {
      return "the table has columns that are never null";
    }
    boolean isFlat = Arrays.stream(SparkSchemaUtil.convert(table.schema()).fields()).allMatch(each -> sluice.Column.Kind.of(each.dataType()) != null);
    return isFlat ? "" : "a column is a list, a map, a struct or a large decimal";
  }

  /** Whether the frame has the table's columns, besides some that will not be written. */
  public static boolean fits(Dataset<Row> frame, Table table, List<String> besides) {
    Predicate<String> isWritten = name -> !Judged.isJudging(name) && !besides.contains(name);
    List<String> names = Arrays.stream(frame.schema().fieldNames()).filter(isWritten).sorted().toList();
    StructType wanted = SparkSchemaUtil.convert(table.schema());
    return names.equals(Arrays.stream(wanted.fieldNames()).sorted().toList())
        && Arrays.stream(wanted.fields()).allMatch(each -> Cast.canUpCast(frame.schema().apply(each.name()).dataType(), each.dataType()));
  }

  /** Whether the rows of such a frame go from columns into columns, without rows of Spark in between. */
  public static boolean isOfColumns(Dataset<Row> frame, Table table) {
    return ColumnsPlan.of(arranged(frame, table), partitioning(table), true) != null;
  }

  private static List<String> partitioning(Table table) {
    return PartitionValues.schema(table).columns().stream().map(NestedField::name).toList();
  }

  /** The frame with the columns of the table, in their order and of their types, and then with what is judged. */
  private static Dataset<Row> arranged(Dataset<Row> frame, Table table) {
    Stream<Column> ofTable =
        Arrays.stream(SparkSchemaUtil.convert(table.schema()).fields())
            .map(each -> has(frame, each) ? column(each.name()) : column(each.name()).cast(each.dataType()).as(each.name()));
    Stream<Column> judging = Arrays.stream(frame.schema().fieldNames()).filter(Judged::isJudging).map(ColumnAppend::column);
    return frame.select(Stream.concat(ofTable, judging).toArray(Column[]::new));
  }

  /** The rows of each task in the order of the table. */
  private static Dataset<Row> sorted(Dataset<Row> frame, Table table) {
    Column[] order = table.sortOrder().fields().stream().map(each -> ordered(table, each)).toArray(Column[]::new);
    return order.length == 0 ? frame : frame.sortWithinPartitions(order);
  }

  private static Column ordered(Table table, SortField by) {
    Column column = column(table.schema().findColumnName(by.sourceId()));
    boolean areNullsFirst = by.nullOrder() == NullOrder.NULLS_FIRST;
    if (by.direction() == SortDirection.ASC) {
      return areNullsFirst ? column.asc_nulls_first() : column.asc_nulls_last();
    }
    return areNullsFirst ? column.desc_nulls_first() : column.desc_nulls_last();
  }

  private static boolean has(Dataset<Row> frame, StructField column) {
    return frame.schema().apply(column.name()).dataType().equals(column.dataType());
  }

  private static Column column(String name) {
    return new Column("`" + name.replace("`", "``") + "`");
  }

  /** Writes the files and commits them. `carries`: bad rows are wanted, and not only counted. */
  public static AppendTally append(Dataset<Row> frame, Table table, String branch, Map<String, String> summary, boolean carries) {
    AppendTally tally = written(sorted(arranged(frame, table), table), table, carries);
    AppendFiles append = table.newAppend().toBranch(branch);
    tally.files.forEach(append::appendFile);
    summary.forEach(append::set);
    try {
      append.commit();
      return tally;
    } catch (RuntimeException failed) {
      if (failed instanceof CleanableFailure) { // nobody names the files
        tally.files.forEach(file -> ColumnFile.delete(table.io(), file.location()));
      }
      throw failed;
    }
  }

  /** Writes the files by a job of Spark. */
  private static AppendTally written(Dataset<Row> frame, Table table, boolean carries) {
    QueryExecution query = frame.queryExecution();
    RowPass.Plan plan = RowPass.plan(frame, partitioning(table), carries);
    JavaSparkContext context = JavaSparkContext.fromSparkContext(frame.sparkSession().sparkContext());
    CollectionAccumulator<String> written = context.sc().collectionAccumulator();
    Broadcast<Table> shared = context.broadcast(SerializableTableWithSize.copyOf(table)); // which executors close
    Task task = new Task(shared, plan.names(), UUID.randomUUID().toString(), written);
    AppendTally all = new AppendTally();
    try {
      SQLExecution.withNewExecutionId(
              query,
              Option.apply("append"),
              () -> plan.passes().map(task::write).collect())
          .forEach(all::add);
      return all;
    } catch (Throwable failed) { // Spark throws its errors undeclared
      written.value().forEach(location -> ColumnFile.delete(table.io(), location));
      throw failed;
    } finally {
      shared.destroy();
    }
  }

  private record Task(Broadcast<Table> table, List<String> names, String operation, CollectionAccumulator<String> written)
      implements Serializable {
    AppendTally write(RowPass pass) throws IOException {
      TaskFiles files = new TaskFiles(table.value(), names, TaskContext.get(), operation);
      AppendTally tally = pass.tally;
      try {
        while (pass.next(files)) {
          TaskContext.get().killTaskIfInterrupted();
        }
        tally.files.addAll(files.end());
      } catch (Throwable failed) { // Spark throws its errors undeclared
        files.abort();
        throw failed;
      }
      tally.files.forEach(file -> written.add(file.location()));
      return tally;
    }
  }
}
