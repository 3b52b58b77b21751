package sluice;

import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The catalog of Sluice's SQL functions: `spark.sql.catalog.fn=sluice.Functions`.
 *
 * <p>The name of most is the description of a decoder, so that everything about it is in the SQL text: fn.`{"format": …}`(value). With
 * `quiet:` in front of it, reasons have no part of the message. `mask:` and a description is a function that masks, `among:` and an id
 * looks numbers up in a set.
 */
public final class Functions implements FunctionCatalog {
  private static final String MASK = "mask:";

  private String name;

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
  }

  @Override
  public String name() {
    return name;
  }

  /** There are as many as there are descriptions. */
  @Override
  public Identifier[] listFunctions(String[] namespace) {
    return new Identifier[0];
  }

  @Override
  public UnboundFunction loadFunction(Identifier identifier) {
    String name = identifier.name();
    if (name.startsWith(MASK)) {
      return new Plain(Mask.of(name.substring(MASK.length())));
    }
    if (name.startsWith(Among.PREFIX)) {
      return new Plain(new Among(name.substring(Among.PREFIX.length())));
    }
    return name.equals(Repeats.NAME) ? new Plain(new Repeats()) : new Unbound(name);
  }

  /** A function whose arguments have the same types in each call. */
  private static final class Plain implements UnboundFunction {
    private final BoundFunction function;

    Plain(BoundFunction function) {
      this.function = function;
    }

    @Override
    public BoundFunction bind(StructType arguments) {
      return function;
    }

    @Override
    public String description() {
      return name();
    }

    @Override
    public String name() {
      return function.name();
    }
  }

  private static final class Unbound implements UnboundFunction {
    private final String description;

    Unbound(String description) {
      this.description = description;
    }

    @Override
    public BoundFunction bind(StructType arguments) {
      if (arguments.length() != 1 || !arguments.fields()[0].dataType().equals(DataTypes.BinaryType)) {
        throw new UnsupportedOperationException("a decoder takes one argument, which is binary");
      }
      return new Decode(description);
    }

    @Override
    public String description() {
      return "decodes the bytes of a Kafka message into columns";
    }

    @Override
    public String name() {
      return "decode";
    }
  }
}
