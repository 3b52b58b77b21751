package sluice;

import java.io.Serializable;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;
import org.apache.spark.QueryContext;
import org.apache.spark.QueryContextType;
import org.apache.spark.SparkThrowable;
import org.apache.spark.TaskKilledException;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Why an expression could not be computed, in words: `division by zero in amount / quantity (amount = 5, quantity = 0)`.
 *
 * <p>The part of the expression is the one that Spark names, or else the whole. Serializable, since it travels with the expression.
 */
public final class Cause implements Serializable {
  private static final int LONGEST_PART = 120;
  private static final int LONGEST_VALUE = 60;
  private static final int LONGEST = 400;
  private static final Pattern GUARD =
      Pattern.compile("CASE WHEN \\(.*?\\) IS NOT FALSE THEN (.*?) ELSE raise_error\\('[^']*'\\) END", Pattern.DOTALL);
  private static final Pattern PLAIN_NAME = Pattern.compile("`([A-Za-z_][A-Za-z0-9_]*)`");

  private final boolean quiet; // the words have nothing of the row
  private final String whole;
  private final String[] names;
  private final DataType[] types;

  private Cause(boolean quiet, String whole, String[] names, DataType[] types) {
    this.quiet = quiet;
    this.whole = whole;
    this.names = names;
    this.types = types;
  }

  /** The cause for an attempt's parsed arguments: the expression, then columns. */
  static Cause of(List<Expression> arguments, boolean quiet) {
    String[] names = arguments.stream().skip(1).map(column -> ((NamedExpression) column).name()).toArray(String[]::new);
    return new Cause(quiet, arguments.get(0).origin().context().fragment(), names, null);
  }

  Cause of(DataType[] types) {
    return new Cause(quiet, whole, names, types);
  }

  /** Called by generated code. What is no fault of the row, such as the end of the task, is thrown on. */
  public UTF8String words(Throwable thrown, Object[] values) {
    if (thrown instanceof TaskKilledException || thrown instanceof InterruptedException) {
      throw Cause.<RuntimeException>unchecked(thrown);
    }
    if (thrown instanceof Error && !(thrown instanceof StackOverflowError)) {
      throw (Error) thrown;
    }
    String part = part(thrown);
    String shown = PLAIN_NAME.matcher(GUARD.matcher(part).replaceAll("$1")).replaceAll("$1");
    String text = what(thrown) + " in " + BadMessage.cut(shown, LONGEST_PART) + given(part, values);
    return UTF8String.fromString(BadMessage.cut(text, LONGEST));
  }

  @SuppressWarnings("unchecked")
  private static <T extends Throwable> RuntimeException unchecked(Throwable thrown) throws T {
    throw (T) thrown;
  }

  /** The part of the expression that failed. */
  private String part(Throwable thrown) {
    if (thrown instanceof SparkThrowable) {
      for (QueryContext context : ((SparkThrowable) thrown).getQueryContext()) {
        if (context.contextType() == QueryContextType.SQL && !context.fragment().isEmpty()) {
          return context.fragment();
        }
      }
    }
    return whole;
  }

  /** The values of the columns in that part; all columns are in backquotes there. */
  private String given(String part, Object[] values) {
    StringBuilder given = new StringBuilder();
    for (int at = 0; at < names.length; at++) {
      if (part.contains("`" + names[at].replace("`", "``") + "`")) {
        given.append(given.length() == 0 ? " (" : ", ").append(names[at]).append(" = ").append(text(values[at], types[at]));
      }
    }
    return given.length() == 0 ? "" : given.append(")").toString();
  }

  private static String text(Object value, DataType type) {
    if (value == null) {
      return "null";
    }
    Object text = new Cast(Literal.create(value, type), DataTypes.StringType, scala.Option.apply("UTC"), Cast.apply$default$4()).eval(null);
    String plain = BadMessage.cut(String.valueOf(text), LONGEST_VALUE);
    return type.equals(DataTypes.StringType) ? "'" + plain + "'" : plain;
  }

  private String what(Throwable thrown) {
    if (thrown instanceof StackOverflowError) {
      return "too deeply nested";
    }
    if (quiet) {
      String condition = thrown instanceof SparkThrowable ? ((SparkThrowable) thrown).getCondition() : null;
      return condition == null ? thrown.getClass().getSimpleName() : condition.toLowerCase(Locale.ROOT).replace('_', ' ').replace(".", ", ");
    }
    if (!(thrown instanceof SparkThrowable) || ((SparkThrowable) thrown).getCondition() == null) {
      String message = thrown.getMessage();
      return BadMessage.cut(thrown.getClass().getSimpleName() + (message == null ? "" : ": " + message), LONGEST_PART);
    }
    return BadMessage.cut(Conditions.words((SparkThrowable) thrown), LONGEST_PART * 2);
  }
}
