package sluice;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Messages of exact offsets of Kafka as a source of Spark, in columns: `spark.read.format("sluice.MessageSource")`.
 *
 * <p>Its one option, `read`, is JSON, which `framework/core/kafka/spark_reader.py` writes: `consumer` has the settings of consumers,
 * `topics` the ids of the topics, `decoders` lists of a name, `key` or `value`, and a decoder's function, and `tasks` what each task reads:
 * lists of a topic, a partition, the first offset, and the offset behind the last.
 */
public final class MessageSource implements TableProvider {
  private static final String NAME = "messages";

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return MessageColumns.schema(Settings.of(json(options)).decodings);
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> options) {
    JsonNode read = json(new CaseInsensitiveStringMap(options));
    MessageSizes sizes = MessageSizes.begun();
    return new ColumnScan.Table(NAME, schema, columns -> new Reading(columns, read, sizes), sizes);
  }

  private static JsonNode json(CaseInsensitiveStringMap options) {
    try {
      return new ObjectMapper().readTree(options.get("read"));
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException("the offsets to read are not readable"); // the text may have a password
    }
  }

  /** The decoder of a key or a value. Its name is that of the struct that it makes. */
  record Decoding(String name, boolean isOfKey, Decode decoder) implements Serializable {
    static Decoding of(JsonNode json) {
      return new Decoding(json.get(0).asText(), json.get(1).asText().equals("key"), new Decode(json.get(2).asText()));
    }
  }

  record Offsets(String topic, int partition, long start, long end) implements Serializable {
    static Offsets of(JsonNode json) {
      return new Offsets(json.get(0).asText(), json.get(1).asInt(), json.get(2).asLong(), json.get(3).asLong());
    }
  }

  /** What every task needs. */
  record Settings(HashMap<String, String> consumer, String topics, ArrayList<Decoding> decodings) implements Serializable {
    static Settings of(JsonNode json) {
      HashMap<String, String> consumer = new HashMap<>();
      json.get("consumer").fields().forEachRemaining(each -> consumer.put(each.getKey(), each.getValue().asText()));
      ArrayList<Decoding> decodings = new ArrayList<>();
      json.get("decoders").forEach(each -> decodings.add(Decoding.of(each)));
      return new Settings(consumer, json.get("topics").toString(), decodings);
    }

    /** Without the login, which a log could show. */
    @Override
    public String toString() {
      return "messages of " + topics;
    }

    /** Who may use a consumer again. */
    Object identity() {
      return List.of(consumer, topics);
    }
  }

  /** What one task reads, one after the other. */
  record Task(ArrayList<Offsets> ranges) implements InputPartition {
    static Task of(JsonNode json) {
      ArrayList<Offsets> ranges = new ArrayList<>();
      json.forEach(each -> ranges.add(Offsets.of(each)));
      return new Task(ranges);
    }
  }

  private static final class Reading extends ColumnScan {
    private final JsonNode read;
    private final MessageSizes sizes;

    Reading(StructType schema, JsonNode read, MessageSizes sizes) {
      super(NAME, schema);
      this.read = read;
      this.sizes = sizes;
    }

    @Override
    public InputPartition[] planInputPartitions() {
      List<InputPartition> tasks = new ArrayList<>();
      read.get("tasks").forEach(each -> tasks.add(Task.of(each)));
      return tasks.toArray(InputPartition[]::new);
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return new MessageReaders(Settings.of(read), readSchema(), sizes);
    }
  }

  private static final class MessageReaders extends ColumnScan.Readers {
    private final Settings settings;
    private final StructType wanted;
    private final MessageSizes sizes;

    MessageReaders(Settings settings, StructType wanted, MessageSizes sizes) {
      this.settings = settings;
      this.wanted = wanted;
      this.sizes = sizes;
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition task) {
      return new Reader(settings, wanted, ((Task) task).ranges, sizes);
    }
  }

  private static final class Reader implements PartitionReader<ColumnarBatch> {
    private final Settings settings;
    private final MessageColumns columns;
    private final List<Offsets> ranges;
    private final MessageSizes sizes;
    private int begun;
    private MessageRange range;

    Reader(Settings settings, StructType wanted, List<Offsets> ranges, MessageSizes sizes) {
      this.settings = settings;
      this.ranges = ranges;
      this.sizes = sizes;
      this.columns = new MessageColumns(wanted, settings.decodings, Consumers.MOST_MESSAGES);
    }

    @Override
    public boolean next() {
      while (range == null || !columns.fill(range)) {
        close();
        if (begun == ranges.size()) {
          return false;
        }
        range = new MessageRange(settings, ranges.get(begun++));
      }
      return true;
    }

    @Override
    public ColumnarBatch get() {
      return columns.batch();
    }

    @Override
    public void close() {
      if (range != null) {
        sizes.add(Map.entry(ranges.get(begun - 1), range.bytes()));
        range.close();
        range = null;
      }
    }
  }
}
