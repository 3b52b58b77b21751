package sluice;

/** Reads the messages of one format into the first cells. It keeps nothing between messages. */
interface MessageReader {
  /** Fills cells, in which nothing is yet, from the bytes that begin at `from`. A {@link BadMessage} says what is wrong. */
  void read(byte[] message, int from, Cells cells);
}
