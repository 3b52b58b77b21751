package sluice;

import java.util.List;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** Sluice's additions to a Spark session: `spark.sql.extensions=sluice.Extensions`. */
public final class Extensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  static final String ATTEMPT = "_sluice_attempt";
  private static final String QUIET = "_sluice_quiet_attempt";

  @Override
  public BoxedUnit apply(SparkSessionExtensions session) {
    inject(session, ATTEMPT, false);
    inject(session, QUIET, true);
    return BoxedUnit.UNIT;
  }

  private static void inject(SparkSessionExtensions session, String name, boolean quiet) {
    ExpressionInfo info = new ExpressionInfo(Attempt.class.getName(), name);
    session.injectFunction(new Tuple3<>(new FunctionIdentifier(name), info, new Build(quiet)));
  }

  private static final class Build extends AbstractFunction1<Seq<Expression>, Expression> {
    private final boolean quiet;

    Build(boolean quiet) {
      this.quiet = quiet;
    }

    @Override
    public Expression apply(Seq<Expression> arguments) {
      List<Expression> children = ScalaList.toJava(arguments);
      return new Attempt(children, Cause.of(children, quiet));
    }
  }
}
