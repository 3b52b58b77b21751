package sluice;

/** Kafka no longer has the messages that are read. */
public final class MessagesGone extends RuntimeException {
  MessagesGone(String message) {
    super(message);
  }
}
