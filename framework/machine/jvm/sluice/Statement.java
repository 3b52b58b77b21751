package sluice;

import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.WeakHashMap;
import org.apache.iceberg.spark.CommitMetadata;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Runs a statement of SQL with properties for the summaries of its snapshots, which hold for this thread alone, and with settings for
 * how Spark plans it. Those are the session's as long as the statement runs: other threads may get such plans, too, never other rows.
 */
public final class Statement {
  /** One lock for each session: one statement runs at a time, so that the session gets back the settings that it had. */
  private static final Map<SQLConf, Object> LOCKS = Collections.synchronizedMap(new WeakHashMap<>());

  private Statement() {}

  public static void run(SparkSession session, String sql, Map<String, String> settings, Map<String, String> properties) {
    SQLConf conf = session.sessionState().conf();
    synchronized (LOCKS.computeIfAbsent(conf, any -> new Object())) {
      runWith(conf, session, sql, settings, properties);
    }
  }

  private static void runWith(
      SQLConf conf, SparkSession session, String sql, Map<String, String> settings, Map<String, String> properties) {
    Map<String, Optional<String>> before = new HashMap<>();
    settings.keySet().forEach(key -> before.put(key, Optional.ofNullable(conf.contains(key) ? conf.getConfString(key) : null)));
    try {
      settings.forEach(conf::setConfString);
      CommitMetadata.withCommitProperties(properties, () -> session.sql(sql), RuntimeException.class);
    } finally {
      before.forEach((key, value) -> value.ifPresentOrElse(was -> conf.setConfString(key, was), () -> conf.unsetConf(key)));
    }
  }
}
