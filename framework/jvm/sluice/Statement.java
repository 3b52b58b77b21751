package sluice;

import java.util.Map;
import org.apache.iceberg.spark.CommitMetadata;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Runs a statement of SQL with settings of its own, and with properties for the summaries of its snapshots. Both hold for this thread
 * alone: other threads use the same session.
 */
public final class Statement {
  private Statement() {}

  public static void run(SparkSession session, String sql, Map<String, String> settings, Map<String, String> properties) {
    SQLConf own = session.sessionState().conf().clone();
    settings.forEach(own::setConfString);
    CommitMetadata.withCommitProperties(
        properties, () -> SQLConf.withExistingConf(own, () -> session.sql(sql)), RuntimeException.class);
  }
}
