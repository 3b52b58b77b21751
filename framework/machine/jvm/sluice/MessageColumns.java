package sluice;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Messages as columns: what Kafka says of them, and the columns that decoders make of their keys and values, each as
 * `<name of the decoder>.<column>`. Only what is asked for is made, and a part of which no column is asked for is not decoded.
 */
final class MessageColumns {
  /** What Kafka says of a message, as in Spark's own source. */
  private enum OfKafka {
    KEY, VALUE, HEADERS, TOPIC, PARTITION, OFFSET, TIMESTAMP;

    void put(ConsumerRecord<byte[], byte[]> message, Column column, int row) {
      switch (this) {
        case KEY -> column.put(row, message.key());
        case VALUE -> column.put(row, message.value());
        case HEADERS -> column.put(row, headers(message.headers().toArray()));
        case TOPIC -> column.put(row, UTF8String.fromString(message.topic()));
        case PARTITION -> column.putNumber(row, message.partition());
        case OFFSET -> column.putNumber(row, message.offset());
        case TIMESTAMP -> column.putNumber(row, micros(message.timestamp()));
      }
    }
  }

  private static final String DDL =
      "key binary, value binary, headers array<struct<key: string, value: binary>>, topic string, partition int, offset bigint,"
          + " timestamp timestamp";
  private static final long LATEST = Long.MAX_VALUE / 1_000; // milliseconds: a producer may send any number as the time

  private final ConsumerRecord<byte[], byte[]>[] messages;
  private final Column[] all; // also those of which nobody asks
  private final ColumnarBatch batch;
  private final List<Raw> raws = new ArrayList<>();
  private final List<Decoded> decodeds = new ArrayList<>();

  private record Raw(OfKafka what, Column column) {}

  /** The columns of one decoder. One of which nobody asks is not in the batch: its decoder may want to know whether it is null. */
  private static final class Decoded implements Cells {
    private final MessageSource.Decoding decoding;
    private final Column[] columns;
    private int row;

    Decoded(MessageSource.Decoding decoding, Column[] columns) {
      this.decoding = decoding;
      this.columns = columns;
    }

    void fill(ConsumerRecord<byte[], byte[]> message, int at) {
      row = at;
      decoding.decoder().read(decoding.isOfKey() ? message.key() : message.value(), this);
    }

    @Override
    public void put(int place, Object value) {
      columns[place].put(row, value);
    }

    @Override
    public void putNumber(int place, long bits) {
      columns[place].putNumber(row, bits);
    }

    @Override
    public void putText(int place, byte[] bytes, int from, int to) {
      columns[place].putText(row, bytes, from, to);
    }

    @Override
    public boolean isNull(int place) {
      return columns[place].isNullAt(row);
    }
  }

  static StructType schema(List<MessageSource.Decoding> decodings) {
    StructType schema = StructType.fromDDL(DDL);
    for (MessageSource.Decoding each : decodings) {
      for (StructField field : each.decoder().resultType().fields()) {
        schema = schema.add(each.name() + "." + field.name(), field.dataType());
      }
    }
    return schema;
  }

  @SuppressWarnings("unchecked")
  MessageColumns(StructType wanted, List<MessageSource.Decoding> decodings, int rows) {
    messages = new ConsumerRecord[rows];
    Column[] columns = Arrays.stream(wanted.fields()).map(each -> Column.of(each.dataType(), rows)).toArray(Column[]::new);
    batch = new ColumnarBatch(columns);
    decodings.forEach(each -> add(each, wanted, columns, rows));
    all = Stream.concat(Arrays.stream(columns), decodeds.stream().flatMap(each -> Arrays.stream(each.columns))).distinct().toArray(Column[]::new);
    for (int at = 0; at < columns.length; at++) {
      String name = wanted.fields()[at].name();
      if (!name.contains(".")) {
        raws.add(new Raw(OfKafka.valueOf(name.toUpperCase(Locale.ROOT)), columns[at]));
      }
    }
  }

  private void add(MessageSource.Decoding decoding, StructType wanted, Column[] columns, int rows) {
    List<String> names = List.of(wanted.fieldNames());
    StructField[] fields = decoding.decoder().resultType().fields();
    int[] places = Arrays.stream(fields).mapToInt(each -> names.indexOf(decoding.name() + "." + each.name())).toArray();
    if (Arrays.stream(places).anyMatch(place -> place >= 0)) {
      Column[] own = new Column[fields.length];
      for (int at = 0; at < own.length; at++) {
        own[at] = places[at] >= 0 ? columns[places[at]] : Column.of(fields[at].dataType(), rows);
      }
      decodeds.add(new Decoded(decoding, own));
    }
  }

  /** Fills the columns with the next messages of a range. Returns whether there were any. */
  boolean fill(MessageRange range) {
    forget();
    int count = range.take(messages);
    for (Raw raw : raws) {
      for (int at = 0; at < count; at++) {
        raw.what.put(messages[at], raw.column, at);
      }
    }
    for (Decoded decoded : decodeds) {
      for (int at = 0; at < count; at++) {
        decoded.fill(messages[at], at);
      }
    }
    batch.setNumRows(count);
    return count > 0;
  }

  /** Large messages must not stay in memory beside the next ones. */
  private void forget() {
    Arrays.fill(messages, null);
    for (Column each : all) {
      each.clear();
    }
  }

  ColumnarBatch batch() {
    return batch;
  }

  private static long micros(long millis) {
    return Math.max(-LATEST, Math.min(LATEST, millis)) * 1_000;
  }

  /** A message without headers has null, not an empty list. */
  private static GenericArrayData headers(Header[] headers) {
    if (headers.length == 0) {
      return null;
    }
    Object[] items = new Object[headers.length];
    for (int i = 0; i < items.length; i++) {
      items[i] = new GenericInternalRow(new Object[] {UTF8String.fromString(headers[i].key()), headers[i].value()});
    }
    return new GenericArrayData(items);
  }
}
