package sluice;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Consumers of Kafka that stay open from batch to batch: a new one takes as long as thousands of messages.
 *
 * <p>A consumer serves again whoever has the same settings, which have the login, and reads the same topics by their ids: it could still
 * get an answer about a topic that has another id now. None joins a group, and none commits anything to Kafka.
 */
final class Consumers {
  /** Messages that are taken from a consumer at once: where they are compressed, of 1 MB each they still fit into memory. */
  static final int MOST_MESSAGES = 256;

  private static final int MOST_IDLE = 64;
  private static final Duration IDLE = Duration.ofMinutes(5);
  private static final Map<String, Object> ALWAYS =
      Map.of(
          "isolation.level", "read_committed",
          "auto.offset.reset", "none",
          "enable.auto.commit", "false",
          "enable.metrics.push", "false",
          "max.poll.records", String.valueOf(MOST_MESSAGES),
          // A fetch behind the last message of a partition waits this long, and the next batch would wait for it.
          "fetch.max.wait.ms", "1",
          // A consumer outlives its batch, and perhaps all brokers that it knows.
          "metadata.recovery.strategy", "rebootstrap");
  private static final Deque<Idle> ALL_IDLE = new ArrayDeque<>(); // the longest idle first
  private static ScheduledExecutorService closing;

  private record Idle(Object identity, KafkaConsumer<byte[], byte[]> consumer, long since) {}

  private Consumers() {}

  /** A consumer with these settings, which has no partitions. `identity` says who may use it again. */
  static KafkaConsumer<byte[], byte[]> take(Object identity, Map<String, String> settings) {
    synchronized (ALL_IDLE) {
      for (Iterator<Idle> each = ALL_IDLE.descendingIterator(); each.hasNext(); ) {
        Idle idle = each.next();
        if (idle.identity.equals(identity)) {
          each.remove();
          return idle.consumer;
        }
      }
    }
    Logins.allow(settings);
    Map<String, Object> all = new HashMap<>(settings);
    all.putAll(ALWAYS);
    return new KafkaConsumer<>(all, new ByteArrayDeserializer(), new ByteArrayDeserializer());
  }

  /** Keeps a consumer that has done what it was asked for. One that failed is closed instead. */
  static void giveBack(Object identity, KafkaConsumer<byte[], byte[]> consumer) {
    consumer.assign(Collections.emptyList()); // forgets the messages that it has fetched ahead
    synchronized (ALL_IDLE) {
      ALL_IDLE.add(new Idle(identity, consumer, System.nanoTime()));
      if (closing == null) {
        closing = Executors.newSingleThreadScheduledExecutor(Consumers::thread);
        closing.scheduleWithFixedDelay(Consumers::closeOld, 1, 1, TimeUnit.MINUTES);
      }
    }
    closeOld();
  }

  private static Thread thread(Runnable work) {
    Thread thread = new Thread(work, "sluice-consumers");
    thread.setDaemon(true);
    return thread;
  }

  private static void closeOld() {
    List<Idle> old = new ArrayList<>();
    synchronized (ALL_IDLE) {
      long now = System.nanoTime();
      while (ALL_IDLE.size() > MOST_IDLE || !ALL_IDLE.isEmpty() && now - ALL_IDLE.peek().since > IDLE.toNanos()) {
        old.add(ALL_IDLE.remove());
      }
    }
    old.forEach(each -> close(each.consumer));
  }

  /** Closes a consumer without waiting for brokers. */
  static void close(KafkaConsumer<byte[], byte[]> consumer) {
    try {
      consumer.close(Duration.ZERO);
    } catch (RuntimeException ignored) { // what it failed with before is what counts
    }
  }
}
