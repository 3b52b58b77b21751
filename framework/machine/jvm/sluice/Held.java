package sluice;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.spark.Dependency;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.storage.StorageLevel;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * The rows of a frame, computed once and held as columns, in memory or on the disk. What is computed of held rows takes their columns as
 * they are.
 */
public final class Held {
  private final SparkSession spark;
  private final StructType schema;
  private final JavaRDD<HeldBlock> blocks;
  private final AppendTally tally = new AppendTally();

  private Held(Dataset<Row> frame, JavaRDD<HeldBlock> blocks) {
    spark = (SparkSession) frame.sparkSession();
    schema = new StructType(Arrays.copyOf(frame.schema().fields(), RowPass.width(frame)));
    this.blocks = blocks;
    blocks.map(HeldBlock::tally).filter(each -> each != null).collect().forEach(tally::add);
  }

  /**
   * Computes them, as an execution of its own, at whose end Spark knows what was observed. Of judged rows ({@link Judged}) the good ones are
   * held, without what is judged. If nothing but columns is added to held rows, these are held once: the others are released.
   */
  public static Held of(Dataset<Row> frame, boolean carries) {
    return SQLExecution.withNewExecutionId(
        frame.queryExecution(),
        Option.apply("hold"),
        () -> {
          RowPass.Plan plan = RowPass.plan(frame, List.of(), carries);
          JavaRDD<HeldBlock> blocks = plan.passes().mapPartitions(each -> new Blocks(each.next()));
          try {
            Held held = new Held(frame, blocks.persist(StorageLevel.MEMORY_AND_DISK()));
            if (plan instanceof ColumnsPlan columns && columns.onlyAddsTo() instanceof HeldScan earlier) {
              earlier.release();
            }
            return held;
          } catch (Throwable failed) { // Spark throws its errors undeclared
            blocks.unpersist(false);
            throw failed;
          }
        });
  }

  /** What became of the rows that were judged. */
  public AppendTally outcome() {
    return tally;
  }

  /** The numbers of a column that has nothing else. */
  public Hashes hashes(String numbers) {
    int place = schema.fieldIndex(numbers);
    return Hashes.of(spark, blocks.filter(each -> each.rows() > 0).map(each -> ((NumberColumn.Numbers) each.columns()[place]).numbers()));
  }

  /** A row with the least and the greatest value of a column, and with how many rows have none. */
  public Dataset<Row> extremes(String name) {
    int place = schema.fieldIndex(name);
    DataType type = schema.fields()[place].dataType();
    Extremes all = new Extremes();
    blocks.mapPartitions(each -> List.of(Extremes.of(each, place, type)).iterator()).collect().forEach(each -> all.add(each, type));
    StructType columns = new StructType().add("low", type).add("high", type).add("nulls", DataTypes.LongType);
    InternalRow row = new GenericInternalRow(new Object[] {all.least, all.greatest, all.nulls});
    Seq<Attribute> attributes = ScalaList.of(ScalaList.toJava(DataTypeUtils.toAttributes(columns)).toArray(Attribute[]::new));
    return dataset(new LocalRelation(attributes, ScalaList.of(row), false, Option.empty()));
  }

  public Dataset<Row> rows() {
    if (areShuffled(blocks.rdd())) {
      StructType columns = schema; // this object does not go to executors
      JavaRDD<InternalRow> rows = blocks.mapPartitions(each -> HeldScan.rows(columns, each));
      return spark.internalCreateDataFrame(rows.rdd(), schema, false);
    }
    var table = new ColumnScan.Table("rows", schema, wanted -> new HeldScan(wanted, schema, blocks.rdd()), null);
    return dataset(DataSourceV2Relation.create(table, Option.empty(), Option.empty(), CaseInsensitiveStringMap.empty(), Option.empty()));
  }

  private Dataset<Row> dataset(LogicalPlan plan) {
    return org.apache.spark.sql.classic.Dataset.ofRows(spark, plan);
  }

  /** Whether the rows came through a shuffle, which Spark has to know to do it again where a machine is lost. */
  private static boolean areShuffled(RDD<?> rdd) {
    List<Dependency<?>> dependencies = ScalaList.toJava(rdd.dependencies());
    return dependencies.stream().anyMatch(each -> each instanceof ShuffleDependency || areShuffled(each.rdd()));
  }

  public void release() {
    blocks.unpersist(false);
  }

  /** The blocks of one pass. The last one has no rows, but what was counted. */
  private static final class Blocks implements Iterator<HeldBlock>, RowTaker {
    private static final int MOST_BYTES = 4 << 20; // of a block, of which Spark has several in its hands; or one row

    private final RowPass pass;
    private final ArrayDeque<HeldBlock> next = new ArrayDeque<>();
    private final ChosenRows chosen = new ChosenRows();
    private boolean isDone;

    Blocks(RowPass pass) {
      this.pass = pass;
    }

    @Override
    public void choose(int row, InternalRow values) {
      chosen.add(row);
    }

    @Override
    public void addChosen(Column[] columns) {
      int count = chosen.count();
      long size = Arrays.stream(columns).mapToLong(each -> each.size(chosen.rows(), count)).sum();
      int rows = (int) Math.max(1, count / (size / MOST_BYTES + 1));
      for (int from = 0; from < count; from += rows) {
        int to = Math.min(from + rows, count);
        next.add(HeldBlock.of(columns, Arrays.copyOfRange(chosen.rows(), from, to), to - from));
      }
      chosen.clear();
    }

    @Override
    public boolean hasNext() {
      while (next.isEmpty() && !isDone) {
        try {
          isDone = !pass.next(this);
        } catch (IOException error) {
          throw new UncheckedIOException(error);
        }
        if (isDone) {
          next.add(HeldBlock.of(pass.tally));
        }
      }
      return !next.isEmpty();
    }

    @Override
    public HeldBlock next() {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }
      return next.remove();
    }
  }
}
