package sluice;

import java.io.IOException;
import java.io.Serializable;
import java.util.Arrays;
import java.util.Iterator;
import java.util.stream.IntStream;
import org.apache.iceberg.Table;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/** Rows of Spark that are added to files by columns. They have the table's columns first, and then what is judged. */
final class RowsPlan implements Serializable {
  private final RowCells cells;
  private final int[] places;
  private final Judged judged;
  private final PartitionValues partition;

  RowsPlan(StructType schema, Table table, boolean carries) {
    int width = table.schema().columns().size();
    cells = new RowCells(new StructType(Arrays.copyOf(schema.fields(), width)));
    places = IntStream.range(0, width).toArray();
    judged = Judged.of(schema, carries);
    partition = new PartitionValues(table, Arrays.asList(schema.fieldNames()));
  }

  void write(Iterator<InternalRow> rows, TaskFiles files, AppendTally tally) throws IOException {
    while (rows.hasNext()) {
      InternalRow row = rows.next();
      tally.addRead(1);
      if (judged.isGood(row, tally)) {
        ColumnFiles target = files.arePartitioned() ? files.of(partition.of(row)) : files.all();
        cells.add(row, target.columns(), places);
        target.added(1);
      }
    }
  }
}
