package sluice;

import java.time.Duration;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.NoOffsetForPartitionException;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;

/**
 * The messages of one partition from one offset up to another one, in their order.
 *
 * <p>It is at its end when the consumer's position is: markers of transactions, messages of aborted ones, and gaps that compaction left
 * are passed without a message. Where Kafka no longer has an offset of the range it fails, and never goes on behind the gap.
 */
final class MessageRange implements AutoCloseable {
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  private final MessageSource.Settings settings;
  private final KafkaConsumer<byte[], byte[]> consumer;
  private final TopicPartition partition;
  private final long end;
  private List<ConsumerRecord<byte[], byte[]>> polled = List.of();
  private int at;
  private long bytes;
  private boolean isDone;

  MessageRange(MessageSource.Settings settings, MessageSource.Offsets offsets) {
    this.settings = settings;
    this.end = offsets.end();
    this.isDone = offsets.start() >= end;
    this.partition = new TopicPartition(offsets.topic(), offsets.partition());
    this.consumer = Consumers.take(settings.identity(), settings.consumer());
    consumer.assign(List.of(partition));
    consumer.seek(partition, offsets.start());
  }

  /** Fills the array with the next messages, as far as they have come. Returns how many; 0 means that there are no more. */
  int take(ConsumerRecord<byte[], byte[]>[] into) {
    while (!isDone && at == polled.size()) {
      poll();
    }
    int count = 0;
    while (!isDone && count < into.length && at < polled.size()) {
      ConsumerRecord<byte[], byte[]> next = polled.get(at++);
      if (next.offset() >= end) {
        isDone = true;
      } else {
        into[count++] = next;
        bytes += Math.max(0, next.serializedKeySize()) + Math.max(0, next.serializedValueSize());
      }
    }
    return count;
  }

  /** The bytes of keys and values of the messages that were taken. */
  long bytes() {
    return bytes;
  }

  private void poll() {
    at = 0;
    polled = List.of();
    try {
      long before = consumer.position(partition, PATIENCE);
      isDone = before >= end;
      if (!isDone) {
        polled = consumer.poll(PATIENCE).records(partition);
        if (polled.isEmpty() && consumer.position(partition) == before) {
          throw nothingCame(before);
        }
      }
    } catch (OffsetOutOfRangeException | NoOffsetForPartitionException gone) {
      throw new MessagesGone(gone.getMessage());
    }
  }

  /** The topic may be another one by now, or shorter; else the cluster does not answer. */
  private RuntimeException nothingCame(long offset) {
    Long last = consumer.endOffsets(List.of(partition), PATIENCE).get(partition);
    return last != null && last <= offset
        ? new MessagesGone(partition + " ends at offset " + last + ", and its messages up to " + end + " were there")
        : new TimeoutException("no message of " + partition + " came from offset " + offset + " on in " + PATIENCE);
  }

  @Override
  public void close() {
    if (isDone) {
      Consumers.giveBack(settings.identity(), consumer);
    } else {
      Consumers.close(consumer);
    }
  }
}
