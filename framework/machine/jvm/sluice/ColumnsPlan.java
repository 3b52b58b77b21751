package sluice;

import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.immutable.Seq;

/**
 * A frame that is nothing but expressions and conditions over columns of ours, and over what earlier ones computed. What only passes is
 * taken out of the columns where it lies: nothing but what an expression computes is ever a row of Spark.
 */
final class ColumnsPlan implements RowPass.Plan {
  private final int[] seen; // the scan's columns, and again those that have another name, too
  private final List<Step> steps = new ArrayList<>();
  private final Seq<Attribute> input; // what is seen, then what the steps compute
  private final int[] passed; // for each column that is given the scan's column, or NONE
  private final Seq<Expression> computed;
  private final StructType computedTypes;
  private final List<String> names;
  private final Seq<Expression> values;
  private final Expression[] judging;
  private final Judged judged;
  private final transient ColumnScan scan;
  private final transient Dataset<Row> frame;

  /** Expressions that are computed before others use their results, or a condition (else null) of the rows that later ones see. */
  private record Step(Seq<Expression> computed, Expression condition, Seq<Attribute> input) implements Serializable {}

  private ColumnsPlan(Dataset<Row> frame, List<String> wanted, boolean carries, DataSourceV2ScanRelation source, List<LogicalPlan> nodes) {
    this.frame = frame;
    scan = (ColumnScan) source.scan();
    SeenColumns columns = new SeenColumns(ScalaList.toJava(source.output()), nodes);
    seen = columns.places();
    boolean endsInProject = !nodes.isEmpty() && nodes.get(nodes.size() - 1) instanceof Project;
    input = stepped(columns, endsInProject ? nodes.subList(0, nodes.size() - 1) : nodes);
    List<Expression> outputs = outputs(nodes.isEmpty() ? source : nodes.get(nodes.size() - 1));
    StructType schema = frame.schema();
    int width = RowPass.width(frame);
    passed = outputs.subList(0, width).stream().mapToInt(columns::place).toArray();
    int[] computedPlaces = IntStream.range(0, width).filter(at -> passed[at] == SeenColumns.NONE).toArray();
    computed = ScalaList.of(Arrays.stream(computedPlaces).mapToObj(outputs::get).toArray(Expression[]::new));
    computedTypes = new StructType(Arrays.stream(computedPlaces).mapToObj(at -> schema.fields()[at]).toArray(StructField[]::new));
    judging = outputs.subList(width, outputs.size()).toArray(Expression[]::new);
    judged = Judged.of(new StructType(Arrays.copyOfRange(schema.fields(), width, schema.length())), carries);
    names = List.copyOf(wanted);
    values = ScalaList.of(names.stream().map(each -> outputs.get(schema.fieldIndex(each))).toArray(Expression[]::new));
  }

  /** Fills the steps. Returns what is known behind them. */
  private Seq<Attribute> stepped(SeenColumns columns, List<LogicalPlan> nodes) {
    List<Attribute> known = new ArrayList<>(columns.names);
    for (LogicalPlan node : nodes) {
      Seq<Attribute> input = ScalaList.of(known.toArray(Attribute[]::new));
      if (node instanceof Filter filter) {
        steps.add(new Step(null, filter.condition(), input));
        continue;
      }
      List<NamedExpression> named = ScalaList.toJava(((Project) node).projectList());
      List<NamedExpression> made = named.stream().filter(each -> each instanceof Alias && columns.place(each.toAttribute()) == SeenColumns.NONE).toList();
      if (!made.isEmpty()) {
        steps.add(new Step(ScalaList.of(made.stream().map(ColumnsPlan::expression).toArray(Expression[]::new)), null, input));
        made.forEach(each -> known.add(each.toAttribute()));
      }
    }
    return ScalaList.of(known.toArray(Attribute[]::new));
  }

  private static List<Expression> outputs(LogicalPlan node) {
    if (node instanceof Project project) {
      return ScalaList.<NamedExpression>toJava(project.projectList()).stream().map(ColumnsPlan::expression).toList();
    }
    return List.copyOf(ScalaList.<Attribute>toJava(node.output()));
  }

  private static Expression expression(NamedExpression named) {
    return named instanceof Alias alias ? alias.child() : (Expression) named;
  }

  /** The plan of a frame; null where the frame does anything else than to compute, to leave out and to judge. */
  static ColumnsPlan of(Dataset<Row> frame, List<String> wanted, boolean carries) {
    List<LogicalPlan> nodes = new ArrayList<>(); // the one that is computed first comes first
    LogicalPlan plan = frame.queryExecution().optimizedPlan();
    for (; plan instanceof Project || plan instanceof Filter; plan = ScalaList.toJava(plan.children()).get(0)) {
      nodes.add(0, plan);
    }
    boolean isOfColumns = plan instanceof DataSourceV2ScanRelation source && source.scan() instanceof ColumnScan;
    Stream<Expression> all = nodes.stream().flatMap(each -> ScalaList.toJava(each.expressions().toSeq()).stream());
    if (!isOfColumns || all.anyMatch(each -> each.exists(part -> part instanceof PlanExpression))) {
      return null;
    }
    return new ColumnsPlan(frame, wanted, carries, (DataSourceV2ScanRelation) plan, nodes);
  }

  @Override
  public JavaRDD<RowPass> passes() {
    var context = frame.sparkSession().sparkContext();
    return scan.batches(context).mapPartitionsWithIndex((part, batches) -> List.<RowPass>of(new Pass(part, batches)).iterator(), false);
  }

  /** The scan of which all columns of all rows are given as they are; null if there is none. */
  ColumnScan onlyAddsTo() {
    long taken = Arrays.stream(passed).filter(place -> place != SeenColumns.NONE).distinct().count();
    boolean takesAll = taken == scan.readSchema().length() && !scan.isPruned() && judging.length == 0;
    return takesAll && steps.stream().allMatch(each -> each.condition == null) ? scan : null;
  }

  @Override
  public List<String> names() {
    return names;
  }

  /** One pass with the generated code of its task. `part`: of the frame, which numbers of rows begin with. */
  private final class Pass extends RowPass {
    private final int part;
    private final Iterator<ColumnarBatch> batches;
    private final RowColumns made = new RowColumns(computedTypes, Consumers.MOST_MESSAGES);
    private final UnsafeProjection[] before;
    private final BasePredicate[] conditions;
    private final JoinedRow[] joined;
    private final UnsafeProjection compute;
    private final UnsafeProjection valuesOf;
    private final UnsafeProjection judge;
    private final BasePredicate isBad;
    private final BasePredicate keeps;
    private final BasePredicate[] unmet;
    private ColumnarBatch batch; // as the expressions see it
    private Column[] columns;

    Pass(int part, Iterator<ColumnarBatch> batches) {
      this.part = part;
      this.batches = batches;
      before = steps.stream().map(each -> each.computed == null ? null : projection(each.computed, each.input)).toArray(UnsafeProjection[]::new);
      conditions = steps.stream().map(each -> each.condition == null ? null : predicate(each.condition, each.input)).toArray(BasePredicate[]::new);
      joined = Stream.generate(JoinedRow::new).limit(before.length).toArray(JoinedRow[]::new);
      compute = projection(computed, input);
      valuesOf = projection(values, input);
      judge = projection(ScalaList.of(judging), input);
      isBad = judged.bad() < 0 ? null : predicate(new IsNotNull(judging[judged.bad()]), input);
      keeps = judged.keep() < 0 ? null : predicate(judging[judged.keep()], input);
      unmet = Arrays.stream(judged.unmet()).mapToObj(at -> predicate(judging[at], input)).toArray(BasePredicate[]::new);
    }

    private UnsafeProjection projection(Seq<Expression> expressions, Seq<Attribute> input) {
      UnsafeProjection projection = UnsafeProjection.create(expressions, input);
      projection.initialize(part);
      return projection;
    }

    private BasePredicate predicate(Expression condition, Seq<Attribute> input) {
      BasePredicate predicate = Predicate$.MODULE$.create(condition, input);
      predicate.initialize(part);
      return predicate;
    }

    @Override
    boolean next(RowTaker taker) throws IOException {
      if (!batches.hasNext()) {
        return false;
      }
      ColumnarBatch read = batches.next();
      if (batch == null) {
        batch = SeenColumns.seen(read, seen);
        columns = columns(read);
      }
      batch.setNumRows(read.numRows());
      tally.addRead(batch.numRows());
      for (int at = 0; at < batch.numRows(); at++) {
        InternalRow row = stepped(batch.getRow(at));
        if (row == null) {
          tally.addFiltered();
        } else if (isGood(row)) {
          taker.choose(at, names.isEmpty() ? row : valuesOf.apply(row));
          if (!computedTypes.isEmpty()) {
            made.put(at, compute.apply(row));
          }
        }
        if (made.isFull() || at == batch.numRows() - 1) {
          taker.addChosen(columns);
          made.clear();
        }
      }
      return true;
    }

    /** The columns that are given: of the scan, or of what is computed. */
    private Column[] columns(ColumnarBatch batch) {
      Column[] columns = new Column[passed.length];
      int next = 0;
      for (int at = 0; at < columns.length; at++) {
        columns[at] = passed[at] == SeenColumns.NONE ? made.columns[next++] : (Column) batch.column(passed[at]);
      }
      return columns;
    }

    /** The row with what the steps compute; null if a step leaves it out. */
    private InternalRow stepped(InternalRow read) {
      InternalRow row = read;
      for (int step = 0; step < before.length; step++) {
        if (before[step] != null) {
          row = joined[step].apply(row, before[step].apply(row));
        } else if (!conditions[step].eval(row)) {
          return null;
        }
      }
      return row;
    }

    private boolean isGood(InternalRow row) {
      if (isBad != null && isBad.eval(row)) {
        tally.addBad(judge.apply(row), judged);
        return false;
      }
      if (keeps != null && !keeps.eval(row)) {
        tally.addFiltered();
        return false;
      }
      for (int expectation = 0; expectation < unmet.length; expectation++) {
        if (unmet[expectation].eval(row)) {
          tally.addUnmet(expectation, judge.apply(row), judged);
        }
      }
      return true;
    }
  }
}
