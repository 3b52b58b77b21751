package sluice;

import java.io.IOException;
import java.io.Serializable;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.iceberg.Table;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/** Rows of Spark that are added to files by columns. They have the table's columns first, and then what is judged. */
final class RowsPlan implements Serializable {
  private static final int MOST_ROWS = 256;

  private final StructType columns;
  private final Judged judged;
  private final PartitionValues partition;

  RowsPlan(StructType schema, Table table, boolean carries) {
    columns = new StructType(Arrays.copyOf(schema.fields(), table.schema().columns().size()));
    judged = Judged.of(schema, carries);
    partition = new PartitionValues(table, Arrays.asList(schema.fieldNames()));
  }

  void write(Iterator<InternalRow> rows, TaskFiles files, AppendTally tally) throws IOException {
    RowColumns copied = new RowColumns(columns, MOST_ROWS);
    while (rows.hasNext()) {
      int count = 0;
      for (; count < MOST_ROWS && !copied.isFull() && rows.hasNext(); count++) {
        InternalRow row = rows.next();
        if (judged.isGood(row, tally)) {
          copied.put(count, row);
          files.choose(files.arePartitioned() ? files.of(partition.of(row)) : files.all(), count);
        }
      }
      tally.addRead(count);
      files.addChosen(copied.columns);
      copied.clear();
    }
  }
}
