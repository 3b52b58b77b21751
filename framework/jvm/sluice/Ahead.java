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
import org.apache.spark.sql.catalyst.parser.SqlBaseLexer;
import org.apache.spark.sql.catalyst.parser.SqlBaseParser;
import org.codehaus.janino.ClassBodyEvaluator;

/**
 * Libraries that a run needs, used once by a thread of its own while Spark starts on another core: Java has loaded them when their turn
 * comes. Spark's start uses none of them, and no session begins before they are done: two threads that initialize the same classes could
 * wait for each other for ever. Scala's reflection needs nobody else's classes, so nobody waits for it.
 */
public final class Ahead {
  private static final List<Callable<?>> LIBRARIES =
      List.of(Ahead::antlr, Ahead::sqlite, Ahead::janino, Ahead::kafka, Ahead::parquet);
  private static final int PATIENCE = 10; // seconds
  private static final CountDownLatch DONE = new CountDownLatch(1);
  private static volatile boolean begun;

  private Ahead() {}

  public static void start() {
    begun = true;
    Thread thread = new Thread(Ahead::useAll, "sluice-ahead");
    thread.setDaemon(true);
    thread.start();
  }

  /** Waits until the libraries are used, where that was begun; whether they are. */
  public static boolean isDone() {
    try {
      return begun && DONE.await(PATIENCE, TimeUnit.SECONDS);
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private static void useAll() {
    LIBRARIES.forEach(Ahead::use);
    DONE.countDown();
    use(Ahead::reflection);
  }

  private static void use(Callable<?> library) {
    try {
      library.call();
    } catch (Exception | LinkageError ignored) { // who needs it says what is wrong
    }
  }

  private static Object antlr() {
    return List.of(SqlBaseLexer._ATN, SqlBaseParser._ATN);
  }

  private static Object sqlite() throws Exception {
    try (Connection connection = DriverManager.getConnection("jdbc:sqlite::memory:")) {
      return connection.createStatement().execute("select 1");
    }
  }

  private static Object janino() throws Exception {
    ClassBodyEvaluator compiler = new ClassBodyEvaluator();
    compiler.cook("public int sum(int[] of) { int all = 0; for (int i = 0; i < of.length; i++) { all += of[i]; } return all; }");
    return compiler.getClazz();
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
