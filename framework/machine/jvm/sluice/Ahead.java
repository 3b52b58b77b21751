package sluice;

import java.sql.Connection;
import java.sql.DriverManager;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.iceberg.Schema;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.parquet.GenericParquetWriter;
import org.apache.iceberg.inmemory.InMemoryOutputFile;
import org.apache.iceberg.io.FileAppender;
import org.apache.iceberg.parquet.Parquet;
import org.apache.iceberg.types.Types;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.spark.sql.catalyst.ScalaReflection;
import org.apache.spark.sql.catalyst.analysis.SimpleAnalyzer$;
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;

/**
 * Uses the classes that a run needs once, in a thread, while Spark starts on another core, so that Java has loaded them.
 *
 * <p>Two threads that initialize the same classes could wait for each other for ever. So no session begins before all is done that
 * sessions use, of which Spark's own start uses nothing; and the rest is what tasks use, several of which begin at once everywhere.
 */
public final class Ahead {
  private static final List<Callable<?>> OF_SESSIONS = List.of(Ahead::query, Ahead::sqlite);
  private static final List<Callable<?>> OF_TASKS = List.of(Ahead::kafka, Ahead::parquet, Ahead::reflection);
  private static final String FIXED_SIZE = "spark.sql.codegen.cache.maxEntries"; // is read by who compiles first
  private static final int PATIENCE = 60; // seconds
  private static final CountDownLatch DONE = new CountDownLatch(1);
  private static volatile boolean begun;

  private Ahead() {}

  public static void start() {
    begun = true;
    Thread thread = new Thread(Ahead::useAll, "sluice-ahead");
    thread.setDaemon(true);
    thread.start();
  }

  /** Waits until sessions can begin. Returns whether everything that they use is loaded. */
  public static boolean waitForSessions() {
    try {
      return begun && DONE.await(PATIENCE, TimeUnit.SECONDS);
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private static void useAll() {
    OF_SESSIONS.forEach(Ahead::use);
    DONE.countDown();
    OF_TASKS.forEach(Ahead::use);
  }

  private static void use(Callable<?> each) {
    try {
      each.call();
    } catch (Exception | LinkageError ignored) { // who needs it says what is wrong
    }
  }

  /** Parses, analyzes and compiles a query over constants, which needs no session. */
  private static Object query() {
    String text =
        "SELECT CAST(a + 1 AS STRING) AS b, CASE WHEN c IN (1, 2) AND a IS NOT NULL THEN a END AS d "
            + "FROM VALUES (1L, 2) AS t(a, c) WHERE a > 0 OR c = 1";
    LogicalPlan plan = SimpleAnalyzer$.MODULE$.execute(CatalystSqlParser$.MODULE$.parsePlan(text));
    if (System.getProperty(FIXED_SIZE) == null && plan instanceof Project project) {
      return GenerateUnsafeProjection.generate(project.projectList(), project.child().output());
    }
    return plan;
  }

  private static Object sqlite() throws Exception {
    try (Connection connection = DriverManager.getConnection("jdbc:sqlite::memory:")) {
      return connection.createStatement().execute("select 1");
    }
  }

  /** Spark asks it for the name of each method that a query calls. */
  private static Object reflection() {
    return ScalaReflection.encodeFieldNameToIdentifier("invoke");
  }

  /** A consumer that never asks for anything, and what each request of another one needs. */
  private static Object kafka() {
    Map<String, Object> settings = Map.of("bootstrap.servers", "127.0.0.1:1", "enable.metrics.push", false);
    new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer()).close(Duration.ZERO);
    return List.of(ApiKeys.values(), Errors.values());
  }

  private static Object parquet() throws Exception {
    Schema schema = new Schema(Types.NestedField.required(1, "one", Types.LongType.get()));
    Parquet.WriteBuilder parquet =
        Parquet.write(new InMemoryOutputFile())
            .schema(schema)
            .set("write.parquet.compression-codec", "zstd")
            .createWriterFunc(type -> GenericParquetWriter.create(schema, type));
    try (FileAppender<Record> appender = parquet.build()) {
      appender.add(GenericRecord.create(schema).copy("one", 1L));
    }
    return schema;
  }
}
