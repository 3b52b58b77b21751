package sluice;

import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/** Cells that are objects of Spark: those of a struct, or the one of a list's or a map's element. */
final class ObjectCells implements Cells {
  final Object[] values;
  private final Type type;

  /** Those of all fields of a struct, and so many others behind them; or the elements of a list or a map, one after the other. */
  ObjectCells(Type type, int others) {
    this.type = type;
    values = new Object[(type.fields == null ? 1 : type.fields.length) + others];
  }

  @Override
  public void put(int place, Object value) {
    values[place] = value;
  }

  @Override
  public void putNumber(int place, long bits) {
    values[place] = number(type.fields == null ? type.element : type.fields[place].type, bits);
  }

  @Override
  public void putText(int place, byte[] bytes, int from, int to) {
    values[place] = UTF8String.fromBytes(bytes, from, to - from);
  }

  @Override
  public boolean isNull(int place) {
    return values[place] == null;
  }

  private static Object number(Type type, long bits) {
    return switch (type.kind) {
      case BOOLEAN -> bits != 0;
      case TINYINT -> (byte) bits;
      case SMALLINT -> (short) bits;
      case INT, DATE -> (int) bits;
      case FLOAT -> Float.intBitsToFloat((int) bits);
      case DOUBLE -> Double.longBitsToDouble(bits);
      case DECIMAL -> Decimal.createUnsafe(bits, type.precision, type.scale);
      default -> bits;
    };
  }
}
