package sluice;

import java.util.Base64;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;

/**
 * Decodes messages without a Spark job and shows the rows as JSON, one in a line: each a list of the columns, the code and the reason.
 *
 * <p>Decimals are texts, dates days, times microseconds, bytes base64, and maps lists of pairs, so that nothing of a value is lost.
 */
public final class AsText {
  private static final int NULL = -1;

  private AsText() {}

  /** The rows of messages, which follow one another, each behind its length in four bytes, which is -1 for null. */
  public static String rows(String description, byte[] messages) {
    Decode decode = new Decode(description);
    StringBuilder out = new StringBuilder();
    for (byte[] message : unpacked(messages)) {
      write(decode.invoke(message), decode.resultType(), out);
      out.append('\n');
    }
    return out.toString();
  }

  private static List<byte[]> unpacked(byte[] messages) {
    List<byte[]> unpacked = new ArrayList<>();
    ByteBuffer in = ByteBuffer.wrap(messages);
    while (in.hasRemaining()) {
      int length = in.getInt();
      byte[] message = length == NULL ? null : new byte[length];
      if (message != null) {
        in.get(message);
      }
      unpacked.add(message);
    }
    return unpacked;
  }

  private static void write(Object value, DataType type, StringBuilder out) {
    if (value == null) {
      out.append("null");
    } else if (type instanceof StructType) {
      StructType struct = (StructType) type;
      out.append('[');
      for (int i = 0; i < struct.length(); i++) {
        out.append(i == 0 ? "" : ",");
        DataType inner = struct.fields()[i].dataType();
        write(((InternalRow) value).get(i, inner), inner, out);
      }
      out.append(']');
    } else if (type instanceof ArrayType) {
      writeItems((ArrayData) value, ((ArrayType) type).elementType(), out);
    } else if (type instanceof MapType) {
      out.append('[');
      writeItems(((MapData) value).keyArray(), DataTypes.StringType, out);
      out.append(',');
      writeItems(((MapData) value).valueArray(), ((MapType) type).valueType(), out);
      out.append(']');
    } else if (type.equals(DataTypes.StringType) || type instanceof DecimalType) {
      ProtobufJson.quote(value.toString(), out);
    } else if (value instanceof byte[]) {
      ProtobufJson.quote(Base64.getEncoder().encodeToString((byte[]) value), out);
    } else {
      out.append(value);
    }
  }

  private static void writeItems(ArrayData items, DataType type, StringBuilder out) {
    out.append('[');
    for (int i = 0; i < items.numElements(); i++) {
      out.append(i == 0 ? "" : ",");
      write(items.get(i, type), type, out);
    }
    out.append(']');
  }
}
