package sluice;

import java.io.Serializable;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FenceProducersResult;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.common.errors.TransactionalIdNotFoundException;

/**
 * The right to send one table's rows to one topic, which Kafka itself takes from whoever had it before.
 *
 * <p>Kafka knows the turn by a transactional id of its own, whose epoch grows each time that somebody takes it, and each of a fixed number
 * of senders by another. Whoever takes the turn first takes that id, and then ends the producers of all senders. A sender first starts its
 * producer and then asks whether the turn is still its own: if it is, a later taker ends this producer too.
 */
public record Turn(String name, long producer, int epoch) implements Serializable {
  /** The largest number of senders of a turn. Another number would leave producers of an older version alone. */
  public static final int SENDERS = 16;

  /** Takes the turn. From then on Kafka refuses what the senders of an earlier turn have not committed. */
  public static Turn take(Map<String, Object> client, String name) throws InterruptedException, ExecutionException {
    Logins.allow(client);
    try (Admin admin = Admin.create(client)) {
      FenceProducersResult taken = admin.fenceProducers(List.of(name));
      Turn turn = new Turn(name, taken.producerId(name).get(), taken.epochId(name).get());
      for (int number = 0; number < SENDERS; number++) {
        admin.fenceProducers(List.of(turn.sender(number))).all().get(); // of several at once the client waits for each, longer each time
      }
      return turn;
    }
  }

  /** Whether nobody has taken the turn since. */
  public boolean isHeld(Map<String, Object> client) throws InterruptedException, ExecutionException {
    Logins.allow(client);
    try (Admin admin = Admin.create(client)) {
      TransactionDescription now = admin.describeTransactions(List.of(name)).description(name).get();
      return now.producerId() == producer && now.producerEpoch() == epoch;
    } catch (ExecutionException error) {
      if (error.getCause() instanceof TransactionalIdNotFoundException) {
        return false; // nobody used it for days, and Kafka has forgotten it
      }
      throw error;
    }
  }

  /** The transactional id of one sender. */
  String sender(int number) {
    return name + "-" + number;
  }
}
