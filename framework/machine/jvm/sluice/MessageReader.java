package sluice;

/** Reads the messages of one format into the places of a row. It keeps nothing between messages. */
interface MessageReader {
  /** Fills the first places of the row from the bytes that begin at `from`. A {@link BadMessage} says what is wrong. */
  void read(byte[] message, int from, Object[] row);
}
