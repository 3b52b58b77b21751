package sluice;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** The columns of a scan as the expressions above it see them: by their own names, and again by each other name that they get. */
final class SeenColumns {
  static final int NONE = -1;

  final List<Attribute> names = new ArrayList<>();
  private final List<Integer> places = new ArrayList<>(); // of each name the scan's column
  private final Map<Long, Integer> placesById = new HashMap<>();

  /** The node that is computed first comes first. */
  SeenColumns(List<? extends Attribute> columns, List<LogicalPlan> nodes) {
    columns.forEach(column -> add(column, names.size()));
    for (LogicalPlan node : nodes) {
      if (node instanceof Project project) {
        for (NamedExpression each : ScalaList.<NamedExpression>toJava(project.projectList())) {
          if (each instanceof Alias alias && place(alias.child()) != NONE) {
            add(alias.toAttribute(), place(alias.child()));
          }
        }
      }
    }
  }

  private void add(Attribute name, int place) {
    names.add(name);
    places.add(place);
    placesById.put(name.exprId().id(), place);
  }

  /** The place of the scan's column that an expression only names, or NONE. */
  int place(Expression expression) {
    return expression instanceof Attribute name ? placesById.getOrDefault(name.exprId().id(), NONE) : NONE;
  }

  int[] places() {
    return places.stream().mapToInt(each -> each).toArray();
  }

  /** A batch of the scan with a column for each name. */
  static ColumnarBatch seen(ColumnarBatch batch, int[] places) {
    ColumnVector[] columns = new ColumnVector[places.length];
    for (int at = 0; at < places.length; at++) {
      columns[at] = batch.column(places[at]);
    }
    return new ColumnarBatch(columns);
  }
}
