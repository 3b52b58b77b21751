package sluice;

import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.iceberg.Table;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.immutable.Seq;

/**
 * A frame that is nothing but expressions over messages, and over what earlier ones computed. It has the table's columns first, and then what
 * is judged. What is a column of the messages goes from there into the file's pages: only what an expression computes is ever a row of Spark.
 */
final class MessagesPlan implements Serializable {
  private static final int NONE = -1;

  private final MessageSource.Settings settings;
  private final StructType wanted;
  private final List<Step> steps;
  private final Seq<Attribute> input; // the message's columns, then what the steps compute
  private final int[] passed; // for each column of the file the message's column, or NONE
  private final Seq<Expression> computed;
  private final StructType computedTypes;
  private final Seq<Expression> partitioning;
  private final PartitionValues partition;
  private final Expression[] judging;
  private final Judged judged;
  private final transient List<MessageSource.Task> tasks;

  /** Expressions that are computed before others use their results. */
  private record Step(Seq<Expression> computed, Seq<Attribute> input) implements Serializable {}

  private MessagesPlan(
      MessageSource.Reading source, List<? extends Attribute> columns, List<List<NamedExpression>> projects, StructType schema, Table table,
      boolean carries) {
    tasks = source.tasks();
    settings = source.settings();
    wanted = source.readSchema();
    Map<Long, Integer> places = new HashMap<>();
    columns.forEach(each -> places.put(each.exprId().id(), places.size()));
    List<Attribute> known = new ArrayList<>(columns);
    steps = new ArrayList<>();
    for (List<NamedExpression> project : projects.subList(0, projects.size() - 1)) {
      List<NamedExpression> made = project.stream().filter(each -> each instanceof Alias).toList();
      steps.add(new Step(expressions(made), ScalaList.of(known.toArray(Attribute[]::new))));
      made.forEach(each -> known.add(each.toAttribute()));
    }
    input = ScalaList.of(known.toArray(Attribute[]::new));
    List<Expression> outputs = ScalaList.toJava(expressions(projects.get(projects.size() - 1)));
    int width = table.schema().columns().size();
    passed = outputs.subList(0, width).stream().mapToInt(each -> place(each, places)).toArray();
    int[] computedPlaces = IntStream.range(0, width).filter(at -> passed[at] == NONE).toArray();
    computed = ScalaList.of(Arrays.stream(computedPlaces).mapToObj(outputs::get).toArray(Expression[]::new));
    computedTypes = new StructType(Arrays.stream(computedPlaces).mapToObj(at -> schema.fields()[at]).toArray(StructField[]::new));
    judging = outputs.subList(width, outputs.size()).toArray(Expression[]::new);
    judged = Judged.of(new StructType(Arrays.copyOfRange(schema.fields(), width, schema.length())), carries);
    List<String> names = PartitionValues.schema(table).columns().stream().map(each -> each.name()).toList();
    partitioning = ScalaList.of(names.stream().map(each -> outputs.get(schema.fieldIndex(each))).toArray(Expression[]::new));
    partition = new PartitionValues(table, names);
  }

  private static int place(Expression output, Map<Long, Integer> places) {
    return output instanceof AttributeReference column ? places.getOrDefault(column.exprId().id(), NONE) : NONE;
  }

  private static Seq<Expression> expressions(List<NamedExpression> named) {
    return ScalaList.of(named.stream().map(each -> each instanceof Alias alias ? alias.child() : (Expression) each).toArray(Expression[]::new));
  }

  /** The plan of a frame; null where the frame does anything else than to compute and to judge its columns from messages. */
  static MessagesPlan of(Dataset<Row> frame, Table table, boolean carries) {
    if (!Judged.areJudged(frame.schema())) {
      return null;
    }
    List<List<NamedExpression>> projects = new ArrayList<>(); // the one that is computed first comes first
    LogicalPlan plan = frame.queryExecution().optimizedPlan();
    while (plan instanceof Project project) {
      projects.add(0, ScalaList.toJava(project.projectList()));
      plan = project.child();
    }
    if (projects.isEmpty() || !(plan instanceof DataSourceV2ScanRelation messages) || !(messages.scan() instanceof MessageSource.Reading source)) {
      return null;
    }
    boolean needsPlan = projects.stream().flatMap(List::stream).anyMatch(each -> ((Expression) each).exists(part -> part instanceof PlanExpression));
    return needsPlan ? null : new MessagesPlan(source, ScalaList.toJava(messages.output()), projects, frame.schema(), table, carries);
  }

  /** Reads messages, and adds the good ones to the files. */
  void write(MessageSource.Task messages, TaskFiles files, AppendTally tally) throws IOException {
    Evaluation evaluation = new Evaluation(tally);
    try (MessageSource.Reader reader = new MessageSource.Reader(settings, wanted, messages.ranges())) {
      Column[] columns = columns(reader.get(), evaluation.made);
      while (reader.next()) {
        TaskContext.get().killTaskIfInterrupted();
        ColumnarBatch batch = reader.get();
        tally.addRead(batch.numRows());
        for (int at = 0; at < batch.numRows(); at++) {
          InternalRow message = evaluation.of(batch.getRow(at));
          if (evaluation.isGood(message)) {
            files.choose(files.arePartitioned() ? files.of(partition.of(evaluation.partitionOf.apply(message))) : files.all(), at);
            evaluation.compute(at, message);
          }
          if (evaluation.made.isFull() || at == batch.numRows() - 1) {
            files.addChosen(columns);
            evaluation.made.clear();
          }
        }
      }
    }
  }

  /** The columns of the files: of the messages, or of what is computed of them. The reader fills the same ones again and again. */
  private Column[] columns(ColumnarBatch messages, RowColumns made) {
    Column[] columns = new Column[passed.length];
    int next = 0;
    for (int at = 0; at < columns.length; at++) {
      columns[at] = passed[at] == NONE ? made.columns[next++] : (Column) messages.column(passed[at]);
    }
    return columns;
  }

  /** The generated code of one task. */
  private final class Evaluation {
    private final AppendTally tally;
    private final UnsafeProjection[] before;
    private final JoinedRow[] joined;
    private final UnsafeProjection compute;
    private final RowColumns made;
    private final UnsafeProjection partitionOf;
    private final UnsafeProjection judge;
    private final BasePredicate isBad;
    private final BasePredicate keeps;
    private final BasePredicate[] unmet;

    Evaluation(AppendTally tally) {
      this.tally = tally;
      before = steps.stream().map(each -> UnsafeProjection.create(each.computed, each.input)).toArray(UnsafeProjection[]::new);
      joined = Stream.generate(JoinedRow::new).limit(before.length).toArray(JoinedRow[]::new);
      compute = UnsafeProjection.create(computed, input);
      made = new RowColumns(computedTypes, Consumers.MOST_MESSAGES);
      partitionOf = UnsafeProjection.create(partitioning, input);
      judge = UnsafeProjection.create(ScalaList.of(judging), input);
      isBad = predicate(new IsNotNull(judging[judged.bad()]));
      keeps = judged.keep() < 0 ? null : predicate(judging[judged.keep()]);
      unmet = Arrays.stream(judged.unmet()).mapToObj(at -> predicate(judging[at])).toArray(BasePredicate[]::new);
    }

    /** The message with what the steps compute. */
    InternalRow of(InternalRow message) {
      InternalRow row = message;
      for (int step = 0; step < before.length; step++) {
        row = joined[step].apply(row, before[step].apply(row));
      }
      return row;
    }

    boolean isGood(InternalRow message) {
      if (isBad.eval(message)) {
        tally.addBad(judge.apply(message), judged);
        return false;
      }
      if (keeps != null && !keeps.eval(message)) {
        tally.addFiltered();
        return false;
      }
      for (int expectation = 0; expectation < unmet.length; expectation++) {
        if (unmet[expectation].eval(message)) {
          tally.addUnmet(expectation, judge.apply(message), judged);
        }
      }
      return true;
    }

    void compute(int at, InternalRow message) {
      if (!computedTypes.isEmpty()) {
        made.put(at, compute.apply(message));
      }
    }
  }

  private BasePredicate predicate(Expression condition) {
    return Predicate$.MODULE$.create(condition, input);
  }

  List<MessageSource.Task> tasks() {
    return tasks;
  }
}
