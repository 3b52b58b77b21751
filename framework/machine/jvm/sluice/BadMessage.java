package sluice;

/**
 * A message that cannot become a row: a code for programs and a reason for people.
 *
 * <p>The path to the field is put together while the exception travels up, so that a good message pays nothing for it. It has no stack
 * trace: a bad message is an ordinary result.
 */
final class BadMessage extends RuntimeException {
  static final String UNDECODABLE = "undecodable";
  static final String MISSING_FIELD = "missing_field";
  static final String UNKNOWN_FIELD = "unknown_field";
  static final String TOO_LARGE = "too_large";
  static final String NULL_VALUE = "null_value";
  static final String UNKNOWN_SCHEMA = "unknown_schema";
  static final String WRONG_SCHEMA = "wrong_schema";

  private static final int LONGEST_PATH = 200;
  private static final int LONGEST_REASON = 300;
  private static final int LONGEST_VALUE = 60;

  final String code;
  private final String reason;
  private final String value;
  private String path = "";
  private String declared = ""; // the path without names that come from the message, such as keys of a map

  private BadMessage(String code, String reason, String value) {
    super(null, null, false, false);
    this.code = code;
    this.reason = reason;
    this.value = value;
  }

  static BadMessage of(String code, String reason) {
    return new BadMessage(code, reason, null);
  }

  /** The bytes are not what the format or the schema says. */
  static BadMessage undecodable(String reason) {
    return new BadMessage(UNDECODABLE, reason, null);
  }

  /** A value that its column cannot hold; `value` is how it stands in the message. */
  static BadMessage misfit(Type wanted, String value) {
    return new BadMessage(UNDECODABLE, "wanted " + wanted.words, value);
  }

  /** Returns this exception with the name of the field around it. */
  BadMessage within(String name) {
    path = joined(name, path);
    return this;
  }

  BadMessage within(Field field) {
    declared = joined(field.source, declared);
    return within(field.source);
  }

  private static String joined(String name, String path) {
    return path.length() >= LONGEST_PATH ? path : path.isEmpty() ? name : path.startsWith("[") ? name + path : name + "." + path;
  }

  BadMessage within(int index) {
    if (path.length() < LONGEST_PATH) {
      path = "[" + index + "]" + (path.isEmpty() || path.startsWith("[") ? "" : ".") + path;
    }
    return this;
  }

  /** Whether this field has a JSON string where its column takes something else. */
  boolean isTextAt(String field) {
    return path.equals(field) && value != null && value.startsWith("\"");
  }

  /** The field and the wanted type, where the message has no part in the words; else null. */
  String quietWhy() {
    return value == null || declared.isEmpty() ? null : "field `" + cut(declared, LONGEST_PATH) + "`: " + cut(reason, LONGEST_REASON);
  }

  /** The reason, with the field before it. */
  String why() {
    String given = value == null ? "" : ", found " + cut(value, LONGEST_VALUE);
    String text = cut(reason, LONGEST_REASON) + given;
    return path.isEmpty() ? text : "field `" + cut(path, LONGEST_PATH) + "`: " + text;
  }

  /** Never in the middle of a character. */
  static String cut(String text, int most) {
    if (text.length() <= most) {
      return text;
    }
    int end = Character.isHighSurrogate(text.charAt(most - 2)) ? most - 2 : most - 1;
    return text.substring(0, end) + "…";
  }

  @Override
  public String getMessage() {
    return code + ": " + why();
  }
}
