package sluice;

/**
 * Where a decoder puts the values of one message, or of one struct, each at its place. Of several values for one place the last counts.
 */
interface Cells {
  /** Puts a value as Spark has it, or null. */
  void put(int place, Object value);

  /** Puts a whole number, the bits of a real one, the unscaled number of a short decimal, or 1 for true. */
  void putNumber(int place, long bits);

  /** Puts a text. Its bytes must not change any more. */
  void putText(int place, byte[] bytes, int from, int to);

  boolean isNull(int place);
}
