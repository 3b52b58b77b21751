package sluice;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;

/** The reader of each format. */
final class Readers {
  private Readers() {}

  static MessageReader of(Description description, Type message) {
    switch (description.format) {
      case "json":
        return json(description, message);
      case "avro":
        return framed(description, writer -> Avro.reader(writer, message));
      case "protobuf":
        return framed(description, writer -> Protobuf.reader(writer, message));
      default:
        throw new IllegalArgumentException("there is no format " + description.format);
    }
  }

  private static MessageReader json(Description description, Type message) {
    if (!description.isFramed) {
      return new Json(description, message, false);
    }
    return framed(description, writer -> new Json(description, message, writer.path("single").asBoolean()));
  }

  private static MessageReader framed(Description description, Function<JsonNode, MessageReader> readerOf) {
    Map<Integer, MessageReader> readers = new HashMap<>();
    description.writers.fieldNames().forEachRemaining(name -> {
      int id = (int) Long.parseLong(name);
      JsonNode writer = description.writers.get(name);
      readers.put(id, writer.has("refused") ? refusing(writer) : readerOf.apply(writer));
    });
    return new Frame(description.part, readers);
  }

  /** A schema that does not fit the columns: each of its messages is a bad row, for the reason that the description gives. */
  private static MessageReader refusing(JsonNode writer) {
    String code = writer.path("code").asText(BadMessage.WRONG_SCHEMA);
    String reason = writer.get("refused").asText();
    return (message, from, cells) -> {
      throw BadMessage.of(code, reason);
    };
  }
}
