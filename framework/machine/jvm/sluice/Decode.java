package sluice;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * The SQL function that makes a struct of a message's bytes: the columns, then `_sluice_code` and `_sluice_why`, which are null for a good message.
 *
 * <p>Of a bad message all columns are null. Spark calls `invoke` from generated code.
 */
public final class Decode implements ScalarFunction<InternalRow> {
  private static final String QUIET = "quiet:";

  private final String name;
  private final String description;
  private final boolean quiet;
  private transient Decoder decoder;

  Decode(String name) {
    this.name = name;
    this.quiet = name.startsWith(QUIET);
    this.description = quiet ? name.substring(QUIET.length()) : name;
    this.decoder = Decoder.of(description);
  }

  /** A task has its own copy of this function, which comes without its decoder. */
  private Decoder decoder() {
    if (decoder == null) {
      decoder = Decoder.of(description);
    }
    return decoder;
  }

  public InternalRow invoke(byte[] message) {
    return new GenericInternalRow(decoder().row(message, quiet));
  }

  void read(byte[] message, Cells cells) {
    decoder().read(message, quiet, cells);
  }

  @Override
  public InternalRow produceResult(InternalRow input) {
    return invoke(input.isNullAt(0) ? null : input.getBinary(0));
  }

  @Override
  public DataType[] inputTypes() {
    return new DataType[] {DataTypes.BinaryType};
  }

  @Override
  public StructType resultType() {
    return decoder().resultType;
  }

  @Override
  public boolean isResultNullable() {
    return false;
  }

  @Override
  public String name() {
    return "decode";
  }

  /** Spark computes two equal calls once, and finds what it has cached. */
  @Override
  public boolean equals(Object other) {
    return other instanceof Decode && ((Decode) other).name.equals(name);
  }

  @Override
  public int hashCode() {
    return name.hashCode();
  }

  @Override
  public String canonicalName() {
    return "sluice.decode." + name;
  }
}
