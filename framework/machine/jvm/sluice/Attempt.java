package sluice;

import java.io.Serializable;
import java.util.List;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.ConditionalExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeBlock$;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.expressions.codegen.FalseLiteral$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * The SQL function `_sluice_attempt(expression, column, …)`: struct&lt;value, error&gt;. What the expression throws becomes the error's words,
 * with the values of these columns; the value is null then.
 *
 * <p>For Spark's optimizer it is a conditional expression: nothing of it is computed outside of it, not even what it has in common with
 * another one. The columns are read only for an error.
 */
public final class Attempt extends Expression implements ConditionalExpression, Serializable {
  private final List<Expression> children;
  private final Cause cause;

  Attempt(List<Expression> children, Cause cause) {
    this.children = children;
    this.cause = cause;
  }

  private Expression expression() {
    return children.get(0);
  }

  private List<Expression> columns() {
    return children.subList(1, children.size());
  }

  /** The cause, which knows the columns' types once these are known. */
  private Cause cause() {
    return cause.of(columns().stream().map(Expression::dataType).toArray(DataType[]::new));
  }

  @Override
  public DataType dataType() {
    return new StructType().add("value", expression().dataType(), true).add("error", DataTypes.StringType, true);
  }

  @Override
  public boolean nullable() {
    return false;
  }

  /** An expression that throws must not be computed before there are rows. */
  @Override
  public boolean foldable() {
    return false;
  }

  /** False although it is deterministic, so that Spark moves no filter below it, and computes it once for filter and value. */
  @Override
  public boolean deterministic() {
    return false;
  }

  @Override
  public Object eval(InternalRow row) {
    Attempted result = new Attempted();
    try {
      result.set(expression().eval(row));
    } catch (Throwable thrown) {
      result.fail(cause().words(thrown, columns().stream().map(column -> column.eval(row)).toArray()));
    }
    return result;
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode result) {
    String thrown = context.freshName("thrown");
    String found = context.freshName("found");
    String words = context.addReferenceObj("cause", cause(), Cause.class.getName());
    StringBuilder code = new StringBuilder();
    code.append(Attempted.class.getName()).append(" ").append(result.value()).append(" = new ").append(Attempted.class.getName());
    code.append("();\ntry {\n");
    compute(code, context, expression(), value -> result.value() + ".set(" + value + ")");
    code.append("} catch (Throwable ").append(thrown).append(") {\n");
    code.append("Object[] ").append(found).append(" = new Object[").append(columns().size()).append("];\n");
    for (int at = 0; at < columns().size(); at++) {
      String place = found + "[" + at + "]";
      compute(code, context, columns().get(at), value -> place + " = " + value);
    }
    code.append(result.value()).append(".fail(").append(words).append(".words(").append(thrown).append(", ").append(found).append("));\n}\n");
    return new ExprCode(CodeBlock$.MODULE$.apply(ScalaList.of(code.toString()), ScalaList.of()), FalseLiteral$.MODULE$, result.value());
  }

  /** Code that computes an expression and does something with its value where it is not null. */
  private static void compute(StringBuilder code, CodegenContext context, Expression expression, UnaryOperator<String> use) {
    ExprCode computed = expression.genCode(context);
    code.append(computed.code()).append("\nif (!").append(computed.isNull()).append(") ");
    code.append(use.apply(computed.value().toString())).append(";\n");
  }

  @Override
  public Seq<Expression> alwaysEvaluatedInputs() {
    return ScalaList.of();
  }

  @Override
  public ConditionalExpression withNewAlwaysEvaluatedInputs(Seq<Expression> inputs) {
    return this;
  }

  @Override
  public Seq<Seq<Expression>> branchGroups() {
    return ScalaList.of();
  }

  @Override
  public Seq<Expression> children() {
    return ScalaList.of(children.toArray(Expression[]::new));
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> replaced) {
    return new Attempt(ScalaList.toJava(replaced), cause);
  }

  @Override
  public String prettyName() {
    return Extensions.ATTEMPT;
  }

  @Override
  public int productArity() {
    return children.size();
  }

  @Override
  public Object productElement(int at) {
    return children.get(at);
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof Attempt;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Attempt && ((Attempt) other).children.equals(children);
  }

  @Override
  public int hashCode() {
    return 31 + children.hashCode();
  }
}
