package sluice;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;

/**
 * The content of a message and the columns that it becomes, read from the name of the SQL function.
 *
 * <p>It is JSON, or `z:` and the base64 of its zlib compression. `framework/messages/encoding/decoder.py` writes it, and says what each key means.
 */
final class Description {
  private static final int LARGEST = 256 << 20;

  final String format;
  /** `value` or `key`, for the words. */
  final String part;
  final Type columns;
  final boolean refusesUnknownFields;
  /** A field that holds the message if it is an object, such as Connect's `payload`; or null. */
  final String root;
  final boolean isDebezium;
  final boolean isFramed;
  /** The meaning of a message without bytes: `bad`, `empty` (an object without fields) or `null` (a row of nulls). */
  final String absent;
  final int largest;
  /** The writers' schemas by their ids; each format reads its own. */
  final JsonNode writers;

  private Description(JsonNode json) {
    format = json.path("format").asText();
    part = json.path("part").asText("value");
    List<Field> fields = fields(json.path("columns"));
    columns = Type.struct(fields);
    refusesUnknownFields = json.path("unknown_fields").asText("ignore").equals("bad");
    root = json.hasNonNull("root") ? json.get("root").asText() : null;
    isDebezium = json.path("envelope").asText().equals("debezium");
    isFramed = json.has("writers");
    absent = json.path("absent").asText("bad");
    largest = json.path("largest").asInt(Integer.MAX_VALUE);
    writers = json.path("writers");
  }

  static Description of(String text) {
    try {
      return new Description(new ObjectMapper().readTree(text.startsWith("z:") ? unpacked(text.substring(2)) : text));
    } catch (JsonProcessingException | DataFormatException error) {
      throw new IllegalArgumentException("the description of a decoder is not readable: " + error.getMessage());
    }
  }

  private static String unpacked(String base64) throws DataFormatException {
    Inflater inflater = new Inflater();
    try {
      inflater.setInput(Base64.getDecoder().decode(base64));
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      byte[] piece = new byte[1 << 16];
      while (!inflater.finished()) {
        int length = inflater.inflate(piece);
        if (length == 0 || out.size() > LARGEST) {
          throw new DataFormatException("it is cut off or too large");
        }
        out.write(piece, 0, length);
      }
      return out.toString(StandardCharsets.UTF_8);
    } finally {
      inflater.end();
    }
  }

  private static List<Field> fields(JsonNode columns) {
    List<Field> fields = new ArrayList<>();
    for (JsonNode column : columns) {
      String name = column.get("name").asText();
      String source = column.path("source").asText(name);
      boolean required = column.path("required").asBoolean();
      fields.add(new Field(name, source, type(column), required));
    }
    return fields;
  }

  private static Type type(JsonNode json) {
    switch (json.path("type").asText()) {
      case "array":
        return Type.array(type(json.get("element")));
      case "map":
        return Type.map(type(json.get("value")));
      case "struct":
        return Type.struct(fields(json.get("fields")));
      default:
        String format = json.path("format").asText("plain").toUpperCase(Locale.ROOT);
        return Type.atom(json.path("type").asText(), Type.Format.valueOf(format));
    }
  }
}
