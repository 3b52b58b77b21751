package sluice;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;

/**
 * Sends rows to a topic, each task by a producer that belongs to a {@link Turn}.
 *
 * <p>A task commits every {@link #ROWS_OF_A_TRANSACTION} rows, in their order, so that a transaction takes seconds. Where somebody takes
 * the turn, the rows of the open transactions are aborted, and those before are in the topic in front of whatever the next sender sends.
 */
public final class Sender {
  private static final int ROWS_OF_A_TRANSACTION = 50_000;

  private final Map<String, Object> client;
  private final Turn turn;
  private final String topic;

  private Sender(Map<String, Object> client, Turn turn, String topic) {
    this.client = new HashMap<>(client);
    this.turn = turn;
    this.topic = topic;
  }

  /** Sends the columns key, value and headers of at most {@link Turn#SENDERS} partitions; returns the number of rows. */
  public static long send(Dataset<Row> rows, Map<String, Object> client, Turn turn, String topic) {
    HashMap<String, Object> settings = new HashMap<>(client);
    List<Long> counts =
        rows.queryExecution().toRdd().toJavaRDD()
            .mapPartitions(partition -> List.of(new Sender(settings, turn, topic).send(partition)).iterator())
            .collect();
    return counts.stream().mapToLong(Long::longValue).sum();
  }

  private long send(Iterator<InternalRow> rows) throws InterruptedException, ExecutionException {
    if (!rows.hasNext()) {
      return 0;
    }
    Logins.allow(client);
    client.put(ProducerConfig.TRANSACTIONAL_ID_CONFIG, turn.sender(TaskContext.getPartitionId()));
    try (KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(client, new ByteArraySerializer(), new ByteArraySerializer())) {
      producer.initTransactions();
      if (!turn.isHeld(client)) {
        throw new TurnLost(turn, null);
      }
      long count = 0;
      while (rows.hasNext()) {
        count += transaction(producer, rows);
      }
      return count;
    } catch (ProducerFencedException | InvalidProducerEpochException error) {
      throw new TurnLost(turn, error);
    }
  }

  private int transaction(KafkaProducer<byte[], byte[]> producer, Iterator<InternalRow> rows) {
    AtomicReference<Exception> failure = new AtomicReference<>();
    int count = 0;
    producer.beginTransaction();
    try {
      for (; count < ROWS_OF_A_TRANSACTION && rows.hasNext() && failure.get() == null; count++) {
        producer.send(record(rows.next()), (sent, error) -> failure.compareAndSet(null, error));
      }
      producer.commitTransaction();
      return count;
    } catch (ProducerFencedException | InvalidProducerEpochException error) {
      throw error;
    } catch (RuntimeException error) {
      abort(producer);
      throw failure.get() instanceof RuntimeException first ? first : error;
    }
  }

  /** Whoever reads committed messages need not wait for the end of the transaction. */
  private static void abort(KafkaProducer<byte[], byte[]> producer) {
    try {
      producer.abortTransaction();
    } catch (RuntimeException error) {
      // The next taker of the turn aborts it, or Kafka does after a minute.
    }
  }

  private ProducerRecord<byte[], byte[]> record(InternalRow row) {
    byte[] key = row.isNullAt(0) ? null : row.getBinary(0);
    byte[] value = row.isNullAt(1) ? null : row.getBinary(1);
    return new ProducerRecord<>(topic, null, key, value, headers(row.getArray(2)));
  }

  private static List<Header> headers(ArrayData array) {
    List<Header> headers = new ArrayList<>(array.numElements());
    for (int index = 0; index < array.numElements(); index++) {
      InternalRow header = array.getStruct(index, 2);
      headers.add(new RecordHeader(header.getUTF8String(0).toString(), header.isNullAt(1) ? null : header.getBinary(1)));
    }
    return headers;
  }
}
