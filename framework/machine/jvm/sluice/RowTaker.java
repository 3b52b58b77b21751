package sluice;

import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;

/** Takes rows out of columns. */
interface RowTaker {
  /** Says that a row of the next columns is taken. `values` are those of which a pass was asked for each row. */
  void choose(int row, InternalRow values);

  /** Takes these rows, of which these are the columns. Their values are somewhere else afterwards. */
  void addChosen(Column[] columns) throws IOException;
}
