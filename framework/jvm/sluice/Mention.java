package sluice;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/**
 * The SQL function `mention`: whether the bytes of a message have one of some texts in them. The texts are secrets, in place of keys, so
 * that no SQL has them.
 *
 * <p>A text counts where it stands by itself: 12 is not in 4123. In binary formats the length of a text comes right before it.
 */
public final class Mention extends Mask<Boolean> {
  Mention(String description, JsonNode options) {
    super(description, options);
  }

  public boolean invoke(byte[] bytes) {
    return bytes != null && Arrays.stream(secrets).anyMatch(text -> isIn(bytes, text));
  }

  private static boolean isIn(byte[] bytes, byte[] text) {
    for (int at = 0; at + text.length <= bytes.length; at++) {
      if (Arrays.equals(bytes, at, at + text.length, text, 0, text.length) && standsAlone(bytes, at, at + text.length)) {
        return true;
      }
    }
    return false;
  }

  private static boolean standsAlone(byte[] bytes, int from, int to) {
    boolean alone = (from == 0 || !isOfWord(bytes[from - 1])) && (to == bytes.length || !isOfWord(bytes[to]));
    return alone || follows(bytes, from, to - from) || follows(bytes, from, 2 * (to - from));
  }

  /** Whether the number comes right before, as Protobuf writes it. Avro writes twice the length. */
  private static boolean follows(byte[] bytes, int from, int number) {
    int first = from - 1;
    for (int left = number >>> 7; left > 0; left >>>= 7) {
      first--;
    }
    if (first < 0) {
      return false;
    }
    for (int at = first; at < from; at++, number >>>= 7) {
      if ((bytes[at] & 0xff) != (number >>> 7 > 0 ? number & 127 | 128 : number)) {
        return false;
      }
    }
    return true;
  }

  private static boolean isOfWord(byte each) {
    return each < 0 || Character.isLetterOrDigit(each) || each == '_';
  }

  @Override
  public Boolean produceResult(InternalRow input) {
    return invoke(input.isNullAt(0) ? null : input.getBinary(0));
  }

  @Override
  public boolean isResultNullable() {
    return false;
  }

  @Override
  public DataType[] inputTypes() {
    return new DataType[] {DataTypes.BinaryType};
  }

  @Override
  public DataType resultType() {
    return DataTypes.BooleanType;
  }
}
