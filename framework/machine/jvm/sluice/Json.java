package sluice;

import java.nio.charset.StandardCharsets;

/** One JSON object per message, whose fields are columns; or one value, which is the only column. */
final class Json implements MessageReader {
  private final Description description;
  private final Type type;
  private final boolean isSingle;
  /** The place of the column that takes a single value: versions with fields may have made others. */
  private final int single;
  private final byte[] root;

  Json(Description description, Type type, boolean isSingle) {
    this.description = description;
    this.type = type;
    this.isSingle = isSingle;
    this.single = isSingle ? single(type) : -1;
    this.root = description.root == null ? null : description.root.getBytes(StandardCharsets.UTF_8);
  }

  @Override
  public void read(byte[] message, int from, Cells cells) {
    JsonText in = new JsonText(message, from, description.part);
    int first = in.next();
    if (in.isAtEnd()) {
      throw BadMessage.undecodable("the " + description.part + " is empty");
    }
    JsonFields fields = new JsonFields(in);
    if (isSingle) {
      single(fields, cells);
    } else if (first != '{') {
      in.skip();
      throw BadMessage.undecodable("the " + description.part + " is not a JSON object but " + kind(first));
    } else if (root != null) {
      unwrap(fields, cells);
    } else {
      fields.object(type, cells);
    }
    if (!in.isAtEnd()) {
      throw BadMessage.undecodable("more text follows the JSON " + (isSingle ? "value" : "object") + " at byte " + in.at);
    }
    if (description.refusesUnknownFields && fields.unknownField != null) {
      throw BadMessage.of(BadMessage.UNKNOWN_FIELD, "the field `" + BadMessage.cut(fields.unknownField, 60) + "` is not a column");
    }
  }

  private static int single(Type type) {
    for (int place = 0; place < type.fields.length; place++) {
      if (type.fields.length == 1 || type.fields[place].source.equals("value")) {
        return place;
      }
    }
    throw new IllegalArgumentException("no column takes a single value");
  }

  private void single(JsonFields fields, Cells cells) {
    try {
      fields.value(type.fields[single].type, cells, single);
    } catch (BadMessage bad) {
      throw bad.within(type.fields[single]);
    }
  }

  /** Reads the object in the field `root`, such as the `payload` beside a `schema`, or else the message itself. */
  private void unwrap(JsonFields fields, Cells cells) {
    ObjectCells inner = fields.objectOr(type, cells, root);
    for (int place = 0; inner != null && place < inner.values.length; place++) {
      cells.put(place, inner.values[place]);
    }
  }

  private static String kind(int first) {
    switch (first) {
      case '[':
        return "a list";
      case '"':
        return "a string";
      case 'n':
        return "null";
      case 't':
      case 'f':
        return "a boolean";
      default:
        return "a number";
    }
  }
}
