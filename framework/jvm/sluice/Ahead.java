package sluice;

import java.sql.Connection;
import java.sql.DriverManager;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
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
import org.apache.spark.rdd.RDDOperationScope;
import org.apache.spark.sql.catalyst.ScalaReflection;
import org.apache.spark.sql.catalyst.parser.SqlBaseLexer;
import org.apache.spark.sql.catalyst.parser.SqlBaseParser;
import org.apache.spark.sql.classic.SparkSession;
import org.codehaus.janino.ClassBodyEvaluator;
import scala.Option;

/**
 * What the first run of a JVM needs, used once by a thread of its own while Spark starts on another core: Java has loaded it when its turn
 * comes. Of Spark's own classes only those of which no other needs them to start, so that two threads never wait for each other.
 */
public final class Ahead {
  private static final List<Callable<?>> LIBRARIES =
      List.of(Ahead::antlr, Ahead::sqlite, Ahead::janino, Ahead::reflection, Ahead::kafka, Ahead::jackson, Ahead::parquet);

  private Ahead() {}

  public static void start() {
    inBackground(Ahead::useLibraries);
  }

  /** Plans a query without running it. */
  static void plan(SparkSession session) {
    inBackground(() -> use(() -> planned(session)));
  }

  private static void inBackground(Runnable work) {
    Thread thread = new Thread(work, "sluice-ahead");
    thread.setDaemon(true);
    thread.start();
  }

  private static void useLibraries() {
    LIBRARIES.forEach(Ahead::use);
  }

  private static void use(Callable<?> each) {
    try {
      each.call();
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

  private static Object jackson() {
    return new RDDOperationScope("scope", Option.empty(), "0").toJson();
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

  private static Object planned(SparkSession session) {
    return session
        .range(1)
        .selectExpr("cast(id as string) as text", "named_struct('id', id, 'of', array(id)) as record", "id > 1 or id is null as many")
        .selectExpr("case when many then concat(text, '!') end as text", "coalesce(record.id, size(record.of)) + 1 as next")
        .where("next in (1, 2, 3) and length(text) > 0")
        .queryExecution()
        .toRdd();
  }
}
