package sluice;

import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/** The SQL function `among:ID`: whether a number is in the set of {@link Hashes} with this id. */
public final class Among implements ScalarFunction<Boolean> {
  static final String PREFIX = "among:";

  private final String id;
  private final Broadcast<Hashes.Table> numbers;
  private transient Hashes.Table table;

  Among(String id) {
    this.id = id;
    numbers = Hashes.table(id);
  }

  public boolean invoke(long number) {
    if (table == null) {
      table = numbers.value();
    }
    return table.has(number);
  }

  @Override
  public Boolean produceResult(InternalRow input) {
    return invoke(input.getLong(0));
  }

  @Override
  public DataType[] inputTypes() {
    return new DataType[] {DataTypes.LongType};
  }

  @Override
  public DataType resultType() {
    return DataTypes.BooleanType;
  }

  @Override
  public boolean isResultNullable() {
    return false;
  }

  @Override
  public String name() {
    return "among";
  }

  @Override
  public String canonicalName() {
    return "sluice.among." + id;
  }
}
