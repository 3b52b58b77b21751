package sluice;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/** Reads an Avro schema's JSON. A name stands for the one type that it was defined as; a record that contains itself is refused. */
final class AvroSchema {
  private static final Set<String> PRIMITIVES = Set.of("null", "boolean", "int", "long", "float", "double", "bytes", "string");
  private static final int DEEPEST = 64;

  private final Map<String, AvroType> defined = new HashMap<>();
  private final Set<String> open = new HashSet<>();

  /** The record that a message is, given the schemas that it refers to; another type is a record with the one field `value`. */
  static AvroType record(JsonNode schema, JsonNode references) {
    AvroSchema reader = new AvroSchema();
    for (JsonNode reference : references) {
      reader.type(reference, "", 0);
    }
    AvroType type = reader.type(schema, "", 0);
    if (type.is("record")) {
      return type;
    }
    AvroType message = new AvroType("record");
    message.memberNames.add("value");
    message.members.add(type);
    return message;
  }

  private AvroType type(JsonNode json, String namespace, int depth) {
    if (depth > DEEPEST) {
      throw new IllegalArgumentException("the schema is nested deeper than " + DEEPEST + " levels");
    }
    if (json.isTextual()) {
      return named(json.asText(), namespace);
    }
    if (json.isArray()) {
      AvroType union = new AvroType("union");
      json.forEach(each -> union.members.add(type(each, namespace, depth + 1)));
      union.nameMembers();
      return union;
    }
    String kind = json.path("type").asText();
    switch (kind) {
      case "record":
      case "error":
      case "enum":
      case "fixed":
        return define(json, kind, namespace, depth);
      case "array":
      case "map":
        AvroType holder = new AvroType(kind);
        holder.members.add(type(json.get(kind.equals("array") ? "items" : "values"), namespace, depth + 1));
        if (kind.equals("array") && !holder.members.get(0).takesBytes()) {
          throw new IllegalArgumentException("an array has items without bytes");
        }
        return holder;
      default:
        if (!PRIMITIVES.contains(kind)) {
          return type(json.get("type"), namespace, depth + 1);
        }
        AvroType type = new AvroType(kind);
        type.setLogical(json);
        return type;
    }
  }

  private AvroType named(String name, String namespace) {
    if (PRIMITIVES.contains(name)) {
      return new AvroType(name);
    }
    String full = name.contains(".") || namespace.isEmpty() ? name : namespace + "." + name;
    for (String each : new String[] {full, name}) {
      if (open.contains(each)) {
        throw new IllegalArgumentException("the record " + name + " contains itself");
      }
      if (defined.containsKey(each)) {
        return defined.get(each);
      }
    }
    throw new IllegalArgumentException("the schema names " + name + ", which it does not define");
  }

  private AvroType define(JsonNode json, String kind, String namespace, int depth) {
    String name = json.get("name").asText();
    int dot = name.lastIndexOf('.');
    String space = dot >= 0 ? name.substring(0, dot) : json.path("namespace").asText(namespace);
    String full = space.isEmpty() ? name.substring(dot + 1) : space + "." + name.substring(dot + 1);
    AvroType type = new AvroType(kind.equals("error") ? "record" : kind);
    type.name = name.substring(dot + 1);
    if (kind.equals("enum")) {
      json.get("symbols").forEach(symbol -> type.symbols.add(symbol.asText()));
    } else if (kind.equals("fixed")) {
      type.size = json.get("size").asInt();
      type.setLogical(json);
    } else {
      open.add(full);
      for (JsonNode field : json.get("fields")) {
        type.memberNames.add(field.get("name").asText());
        type.members.add(type(field.get("type"), space, depth + 1));
      }
      open.remove(full);
    }
    defined.put(full, type);
    return type;
  }
}
