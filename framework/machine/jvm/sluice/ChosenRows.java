package sluice;

import java.util.Arrays;

/** The numbers of the rows that were chosen out of the next columns, in their order. */
final class ChosenRows {
  private static final int FIRST_SIZE = 16;

  private int[] rows = new int[FIRST_SIZE];
  private int count;

  void add(int row) {
    if (count == rows.length) {
      rows = Arrays.copyOf(rows, 2 * count);
    }
    rows[count++] = row;
  }

  /** The rows, and perhaps more behind them. */
  int[] rows() {
    return rows;
  }

  int count() {
    return count;
  }

  void clear() {
    count = 0;
  }
}
