package sluice;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;

/**
 * The types that Spark's analyser gives to expressions. The table of functions is made of them, `tests/support/signature_table.py`.
 *
 * <p>It is asked for many at once, since each analysis goes through all of its rules.
 */
public final class Analyser {
  private static final int AT_ONCE = 256;

  private final SparkSession spark;
  private final String view;
  private final String[] expressions;
  private final String[] types;

  private Analyser(SparkSession spark, String view, String[] expressions) {
    this.spark = spark;
    this.view = view;
    this.expressions = expressions;
    types = new String[expressions.length];
  }

  /** For each expression over a view its type, with ` changing` behind it if it is not deterministic; or `!` and why it has none. */
  public static String[] types(SparkSession spark, String view, String[] expressions) {
    Analyser asked = new Analyser(spark, view, expressions);
    IntStream.rangeClosed(0, expressions.length / AT_ONCE)
        .parallel()
        .forEach(at -> asked.judge(IntStream.range(at * AT_ONCE, Math.min(expressions.length, (at + 1) * AT_ONCE)).toArray()));
    return asked.types;
  }

  /** Each of them, by halves where the analyser takes them not together: one that it does not take can be in the way of the others. */
  private void judge(int[] group) {
    SparkSession.setActiveSession(spark);
    if (group.length == 1) {
      types[group[0]] = type(group[0]);
    } else if (group.length > 1 && !isJudged(group)) {
      judge(Arrays.copyOfRange(group, 0, group.length / 2));
      judge(Arrays.copyOfRange(group, group.length / 2, group.length));
    }
  }

  private boolean isJudged(int[] group) {
    List<NamedExpression> columns = new ArrayList<>();
    List<Integer> resolved = new ArrayList<>();
    try {
      if (!(spark.sessionState().analyzer().execute(parsed(group)) instanceof Project project)) {
        return false;
      }
      List<NamedExpression> all = ScalaList.toJava(project.projectList());
      for (int at = 0; at < group.length; at++) {
        types[group[at]] = "! not resolved";
        if (((Expression) all.get(at)).resolved()) {
          columns.add(all.get(at));
          resolved.add(group[at]);
        }
      }
      check(new Project(ScalaList.of(columns.toArray(NamedExpression[]::new)), project.child()));
    } catch (Exception error) {
      return false;
    }
    for (int at = 0; at < columns.size(); at++) {
      types[resolved.get(at)] = said(((Alias) columns.get(at)).child());
    }
    return true;
  }

  private String type(int expression) {
    try {
      return said(((Alias) ScalaList.toJava(((Project) check(parsed(expression))).projectList()).get(0)).child());
    } catch (Exception error) {
      return "!" + String.valueOf(error.getMessage()).lines().findFirst().orElse("");
    }
  }

  private LogicalPlan parsed(int... group) throws ParseException {
    String columns = Arrays.stream(group).mapToObj(at -> expressions[at] + " AS x" + at).collect(Collectors.joining(", "));
    return spark.sessionState().sqlParser().parsePlan("SELECT " + columns + " FROM " + view);
  }

  private LogicalPlan check(LogicalPlan plan) {
    return spark.sessionState().analyzer().executeAndCheck(plan, new QueryPlanningTracker(Option.empty()));
  }

  private static String said(Expression expression) {
    return expression.dataType().catalogString() + (expression.deterministic() ? "" : " changing");
  }
}
