package sluice;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * An attempt's result: struct&lt;value, error&gt;. A number is kept as it is, not as an object: then Java need not make this row at all
 * where its parts are used at once.
 */
public final class Attempted extends GenericInternalRow {
  private static final Object[] NONE = new Object[0];

  private Object value; // or the class of the number below; null for null
  private long whole;
  private double real;
  private UTF8String error;

  public Attempted() {
    super(NONE);
  }

  // Generated code calls the one for the value's type.

  public void set(boolean number) {
    value = Boolean.class;
    whole = number ? 1 : 0;
  }

  public void set(byte number) {
    value = Byte.class;
    whole = number;
  }

  public void set(short number) {
    value = Short.class;
    whole = number;
  }

  public void set(int number) {
    value = Integer.class;
    whole = number;
  }

  public void set(long number) {
    value = Long.class;
    whole = number;
  }

  public void set(float number) {
    value = Float.class;
    real = number;
  }

  public void set(double number) {
    value = Double.class;
    real = number;
  }

  public void set(Object any) {
    value = any;
  }

  public void fail(UTF8String words) {
    value = null;
    error = words;
  }

  @Override
  public int numFields() {
    return 2;
  }

  @Override
  public boolean isNullAt(int at) {
    return (at == 0 ? value : error) == null;
  }

  @Override
  public boolean getBoolean(int at) {
    return value == Boolean.class ? whole != 0 : (Boolean) value;
  }

  @Override
  public byte getByte(int at) {
    return value == Byte.class ? (byte) whole : (Byte) value;
  }

  @Override
  public short getShort(int at) {
    return value == Short.class ? (short) whole : (Short) value;
  }

  @Override
  public int getInt(int at) {
    return value == Integer.class ? (int) whole : (Integer) value;
  }

  @Override
  public long getLong(int at) {
    return value == Long.class ? whole : (Long) value;
  }

  @Override
  public float getFloat(int at) {
    return value == Float.class ? (float) real : (Float) value;
  }

  @Override
  public double getDouble(int at) {
    return value == Double.class ? real : (Double) value;
  }

  @Override
  public Object genericGet(int at) {
    if (at == 1) {
      return error;
    }
    if (!(value instanceof Class)) {
      return value;
    }
    return value == Boolean.class ? (Object) getBoolean(0)
        : value == Byte.class ? (Object) getByte(0)
        : value == Short.class ? (Object) getShort(0)
        : value == Integer.class ? (Object) getInt(0)
        : value == Long.class ? (Object) getLong(0)
        : value == Float.class ? (Object) getFloat(0)
        : (Object) getDouble(0);
  }

  @Override
  public Object[] values() {
    return new Object[] {genericGet(0), error};
  }

  @Override
  public GenericInternalRow copy() {
    return new GenericInternalRow(new Object[] {InternalRow.copyValue(genericGet(0)), error == null ? null : error.copy()});
  }
}
