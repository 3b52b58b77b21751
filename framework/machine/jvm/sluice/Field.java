package sluice;

/** A column, or a field of a struct: its name in the table, and `source`, its name in the message. */
final class Field {
  final String name;
  final String source;
  final Type type;
  final boolean required;

  Field(String name, String source, Type type, boolean required) {
    this.name = name;
    this.source = source;
    this.type = type;
    this.required = required;
  }
}
