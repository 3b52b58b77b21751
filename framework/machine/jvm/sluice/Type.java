package sluice;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;

/** The type of a column, as Spark has it, and how its values are written in the message where that is not the obvious way. */
final class Type {
  enum Kind {
    STRING, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ,
    ARRAY, MAP, STRUCT
  }

  enum Format {
    /** ISO text for times, a JSON number for numbers, base64 for bytes. */
    PLAIN,
    EPOCH_MILLIS,
    EPOCH_MICROS,
    EPOCH_DAYS,
    /** A decimal as the base64 of its bytes, the highest first, as Connect writes it; a number is taken, too. */
    BASE64,
    /** A whole number that may be written `1.0` or `1e2`, as JSON Schema's integers. */
    INTEGRAL
  }

  private static final Map<String, DataType> ATOMS = Map.ofEntries(
      Map.entry("string", DataTypes.StringType), Map.entry("boolean", DataTypes.BooleanType),
      Map.entry("tinyint", DataTypes.ByteType), Map.entry("smallint", DataTypes.ShortType),
      Map.entry("int", DataTypes.IntegerType), Map.entry("bigint", DataTypes.LongType),
      Map.entry("float", DataTypes.FloatType), Map.entry("double", DataTypes.DoubleType),
      Map.entry("binary", DataTypes.BinaryType), Map.entry("date", DataTypes.DateType),
      Map.entry("timestamp", DataTypes.TimestampType), Map.entry("timestamp_ntz", DataTypes.TimestampNTZType));
  private static final Pattern DECIMAL = Pattern.compile("decimal\\((\\d{1,2}),(\\d{1,2})\\)");

  final Kind kind;
  final DataType spark;
  final Format format;
  /** The type of an array's elements, or of a map's values. */
  final Type element;
  /** The fields of a struct. */
  final Field[] fields;
  final Names names;
  /** The digits of a decimal. */
  final int precision;
  final int scale;
  /** The type in words, for people. */
  final String words;

  private Type(Kind kind, DataType spark, Format format, Type element, Field[] fields) {
    this.kind = kind;
    this.spark = spark;
    this.format = format;
    this.element = element;
    this.fields = fields;
    this.names = fields == null ? null : new Names(fields);
    this.precision = kind == Kind.DECIMAL ? ((DecimalType) spark).precision() : 0;
    this.scale = kind == Kind.DECIMAL ? ((DecimalType) spark).scale() : 0;
    String text = fields != null ? "struct" : spark.simpleString();
    this.words = BadMessage.cut(text, 80) + (format == Format.PLAIN || format == Format.INTEGRAL ? "" : " (" + format.name().toLowerCase(Locale.ROOT) + ")");
  }

  /** A type that holds no other, by Spark's name for it. */
  static Type atom(String name, Format format) {
    Matcher decimal = DECIMAL.matcher(name);
    if (decimal.matches()) {
      int precision = Integer.parseInt(decimal.group(1));
      int scale = Integer.parseInt(decimal.group(2));
      return new Type(Kind.DECIMAL, DataTypes.createDecimalType(precision, scale), format, null, null);
    }
    DataType spark = ATOMS.get(name);
    if (spark == null) {
      throw new IllegalArgumentException("there is no type " + name);
    }
    return new Type(Kind.valueOf(name.toUpperCase(Locale.ROOT)), spark, format, null, null);
  }

  static Type array(Type element) {
    return new Type(Kind.ARRAY, DataTypes.createArrayType(element.spark, true), Format.PLAIN, element, null);
  }

  /** The keys of maps are texts in every format. */
  static Type map(Type value) {
    DataType spark = DataTypes.createMapType(DataTypes.StringType, value.spark, true);
    return new Type(Kind.MAP, spark, Format.PLAIN, value, null);
  }

  static Type struct(List<Field> fields) {
    List<StructField> parts = new ArrayList<>();
    for (Field field : fields) {
      parts.add(DataTypes.createStructField(field.name, field.type.spark, true));
    }
    return new Type(Kind.STRUCT, DataTypes.createStructType(parts), Format.PLAIN, null, fields.toArray(new Field[0]));
  }

  /** The field of a struct with this name in the table, or null. */
  Field field(String name) {
    for (Field field : fields) {
      if (field.name.equals(name)) {
        return field;
      }
    }
    return null;
  }
}
