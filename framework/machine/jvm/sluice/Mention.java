package sluice;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/**
 * The SQL function `mention`: whether the bytes of a message have one of some texts in them. The texts are secrets, in place of keys, so
 * that no SQL has them; `fields` are names that the field with the text can have.
 *
 * <p>A text counts where it is no part of a longer one: c-2 is neither in abc-2 nor in c-2-3. In binary formats the length of a text comes
 * right before it. Other encodings of text are tried, too. A number counts only behind the name of its field, or where there is nothing else: other numbers are often equal.
 */
public final class Mention extends Mask<Boolean> {
  private static final String JOINING = "_-.@+";
  private static final List<Charset> OTHERS =
      List.of(
          StandardCharsets.UTF_16LE, StandardCharsets.UTF_16BE, Charset.forName("UTF-32LE"), Charset.forName("UTF-32BE"),
          StandardCharsets.ISO_8859_1);

  private final byte[][] fields;

  Mention(String description, JsonNode options) {
    super(description, options);
    JsonNode names = options.path("fields");
    fields = new byte[names.size()][];
    for (int at = 0; at < fields.length; at++) {
      fields[at] = ('"' + names.get(at).asText() + '"').getBytes(StandardCharsets.UTF_8);
    }
  }

  public boolean invoke(byte[] bytes) {
    return bytes != null && (isMentioned(bytes) || OTHERS.stream().anyMatch(encoding -> isMentioned(inUtf8(bytes, encoding))));
  }

  /** The bytes of a text in another encoding, without the mark that some begin with. */
  private static byte[] inUtf8(byte[] bytes, Charset encoding) {
    return new String(bytes, encoding).replace("\uFEFF", "").getBytes(StandardCharsets.UTF_8);
  }

  private boolean isMentioned(byte[] bytes) {
    for (byte[] each = bytes; each != null; each = unescaped(each)) { // a text of JSON may have JSON in it
      byte[] now = each;
      if (Arrays.stream(secrets).anyMatch(text -> isIn(now, text))) {
        return true;
      }
    }
    return false;
  }

  /** The bytes with what JSON escapes as it is; null where nothing is escaped. */
  private static byte[] unescaped(byte[] bytes) {
    ByteArrayOutputStream plain = new ByteArrayOutputStream(bytes.length);
    for (int at = 0; at < bytes.length; at++) {
      int letter = bytes[at] == '\\' && at + 1 < bytes.length ? "bfnrt\"\\/u".indexOf(bytes[at + 1]) : -1;
      if (letter < 0) {
        plain.write(bytes[at]);
      } else if (letter < 8) {
        plain.write("\b\f\n\r\t\"\\/".charAt(letter));
        at++;
      } else {
        int end = at;
        StringBuilder text = new StringBuilder(2); // two of them may be one character
        for (int unit = unit(bytes, end); unit >= 0; unit = unit(bytes, end)) {
          text.append((char) unit);
          end += 6;
        }
        plain.writeBytes(end == at ? new byte[] {bytes[at]} : text.toString().getBytes(StandardCharsets.UTF_8));
        at = Math.max(at, end - 1);
      }
    }
    return plain.size() == bytes.length ? null : plain.toByteArray();
  }

  /** The half of a character that begins here as a backslash, u and four digits; -1 for anything else. */
  private static int unit(byte[] bytes, int at) {
    if (at + 6 > bytes.length || bytes[at] != '\\' || bytes[at + 1] != 'u') {
      return -1;
    }
    int unit = 0;
    for (int digit = at + 2; digit < at + 6; digit++) {
      int value = Character.digit(bytes[digit], 16);
      if (value < 0) {
        return -1;
      }
      unit = unit << 4 | value;
    }
    return unit;
  }

  private boolean isIn(byte[] bytes, byte[] text) {
    boolean isNumber = isNumber(text);
    for (int at = 0; at + text.length <= bytes.length; at++) {
      int end = at + text.length;
      if (Arrays.equals(bytes, at, end, text, 0, text.length)
          && (hasLength(bytes, at, end) || (isNumber ? isWhole(bytes, at, end) : standsAlone(bytes, at, end)))) {
        return true;
      }
    }
    return false;
  }

  private static boolean isNumber(byte[] text) {
    for (byte each : text) {
      if ((each < '0' || each > '9') && each != '-') {
        return false;
      }
    }
    return true;
  }

  private boolean isWhole(byte[] bytes, int from, int to) {
    if (from == 0 && to == bytes.length) {
      return true;
    }
    int at = from;
    while (at > 0 && (bytes[at - 1] == '"' || bytes[at - 1] == ':' || bytes[at - 1] == ' ')) {
      at--;
    }
    // The quotation mark that ends the name was passed, too.
    int end = at + 1;
    boolean isField = at < from && Arrays.stream(fields).anyMatch(each -> endsWith(bytes, end, each));
    return isField && (to == bytes.length || !isOfWord(bytes, to));
  }

  private static boolean endsWith(byte[] bytes, int end, byte[] field) {
    return end >= field.length && Arrays.equals(bytes, end - field.length, end, field, 0, field.length);
  }

  private static boolean standsAlone(byte[] bytes, int from, int to) {
    return (from == 0 || !isOfWord(bytes, from - 1)) && (to == bytes.length || !isOfWord(bytes, to));
  }

  /** A length of one digit before a number is too often something else. */
  private static boolean hasLength(byte[] bytes, int from, int to) {
    return to - from > 1 && (follows(bytes, from, to - from) || follows(bytes, from, 2 * (to - from)));
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

  /** Letters, digits, and what joins them; but not the dot that ends a sentence. */
  private static boolean isOfWord(byte[] bytes, int at) {
    byte each = bytes[at];
    if (each == '.' && (at + 1 == bytes.length || bytes[at + 1] == ' ' || bytes[at + 1] == '"')) {
      return false;
    }
    return each < 0 || Character.isLetterOrDigit(each) || JOINING.indexOf(each) >= 0;
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
