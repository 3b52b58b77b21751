package sluice;

import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;

/** The types that Spark's analyser gives to expressions. The table of functions is made of them, `framework/engine/spark/signature_table.py`. */
public final class Analyser {
  private Analyser() {}

  /** For each expression over a view its type, with ` changing` behind it if it is not deterministic; or `!` and why it has none. */
  public static String[] types(SparkSession spark, String view, String[] expressions) {
    String[] types = new String[expressions.length];
    IntStream.range(0, types.length).parallel().forEach(at -> types[at] = type(spark, "SELECT " + expressions[at] + " AS x FROM " + view));
    return types;
  }

  private static String type(SparkSession spark, String query) {
    SparkSession.setActiveSession(spark);
    try {
      LogicalPlan plan = spark.sessionState().sqlParser().parsePlan(query);
      LogicalPlan analyzed = spark.sessionState().analyzer().executeAndCheck(plan, new QueryPlanningTracker(Option.empty()));
      return analyzed.schema().fields()[0].dataType().catalogString() + (analyzed.deterministic() ? "" : " changing");
    } catch (Exception error) {
      return "!" + String.valueOf(error.getMessage()).lines().findFirst().orElse("");
    }
  }
}
