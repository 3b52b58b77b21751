package sluice;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** A type of an Avro schema. `kind` is Avro's own word for it; which of the other fields mean something depends on it. */
final class AvroType {
  final String kind;
  String logical = "";
  /** The name of a record, an enum or a fixed, without its namespace. */
  String name = "";
  /** The names of a record's fields, or of a union's types as fields of a struct. */
  List<String> memberNames = new ArrayList<>();
  /** The types inside a record, an array, a map or a union. */
  List<AvroType> members = new ArrayList<>();
  List<String> symbols = new ArrayList<>();
  int size;
  int precision;
  int scale;
  private Boolean takesBytes;

  AvroType(String kind) {
    this.kind = kind;
  }

  boolean is(String other) {
    return kind.equals(other);
  }

  /** Whether each value takes at least one byte: ten bytes can claim to be an array of any number of other values. */
  boolean takesBytes() {
    if (takesBytes == null) {
      boolean isEmpty = is("null") || is("fixed") && size == 0;
      takesBytes = is("record") ? members.stream().anyMatch(AvroType::takesBytes) : !isEmpty;
    }
    return takesBytes;
  }

  /** Logical types that do not belong to their type are to be ignored, says Avro. */
  void setLogical(JsonNode json) {
    String logical = json.path("logicalType").asText();
    if (logical.equals("decimal") && (is("bytes") || is("fixed"))) {
      precision = json.path("precision").asInt();
      scale = json.path("scale").asInt();
      boolean isWhole = json.path("precision").isInt() && (!json.has("scale") || json.path("scale").isInt());
      boolean fits = isWhole && precision > 0 && precision <= 38 && scale >= 0 && scale <= precision;
      this.logical = fits ? logical : "";
    } else if (logical.equals("uuid") && (is("string") || is("fixed") && size == 16)
        || logical.equals("date") && is("int")
        || is("long") && logical.matches("(local-)?timestamp-(millis|micros)")) {
      this.logical = logical;
    }
  }

  /** Names the types of a union: a record by its name, others by their type, with a number behind a repeated name. Null has none. */
  void nameMembers() {
    int count = 0;
    for (AvroType member : members) {
      if (member.is("null")) {
        memberNames.add("");
        continue;
      }
      String name = member.name.isEmpty() ? member.kind : member.name;
      boolean isTaken = memberNames.stream().anyMatch(name::equalsIgnoreCase);
      memberNames.add(isTaken ? name + "_" + count : name);
      count++;
    }
  }

  /** The types of a union that are not null. */
  List<AvroType> values() {
    List<AvroType> values = new ArrayList<>(members);
    values.removeIf(each -> each.is("null"));
    return values;
  }

  @Override
  public String toString() {
    return (logical.isEmpty() ? kind : logical).toLowerCase(Locale.ROOT);
  }
}
