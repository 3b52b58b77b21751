package sluice;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.unsafe.types.UTF8String;

/** A message type of a compiled Protobuf schema. It may contain itself, as JSON values do. */
final class ProtobufType {
  enum Kind {
    DOUBLE(1), FLOAT(5), INT32(0), INT64(0), UINT32(0), UINT64(0), SINT32(0), SINT64(0), FIXED32(5), FIXED64(1), SFIXED32(5),
    SFIXED64(1), BOOL(0), ENUM(0), STRING(2), BYTES(2), MESSAGE(2);

    /** The number by which the bytes say how a value is written. */
    final int wire;

    Kind(int wire) {
      this.wire = wire;
    }
  }

  /** A field, and its place among the values of a message that is read. */
  static final class Member {
    String name;
    int number;
    int place;
    Kind kind;
    boolean isRepeated;
    boolean isMap;
    boolean isRequired;
    /** The value of an absent field, as it is read; null if an absent value is null. */
    Object absent;
    /** Where it is said which member of its oneof the message has: behind the places of all members. */
    int oneof = NONE;
    ProtobufType message;
    /** The names of an enum by their numbers. */
    Map<Integer, UTF8String> symbols;
    boolean isClosed;
  }

  static final int NONE = -1;

  final String name;
  /** How many values a message has while it is read. */
  int places;
  List<Member> members = new ArrayList<>();
  private Map<Integer, Member> byNumber = new HashMap<>();
  private Member[] byLowNumber = new Member[64];
  private boolean hasRequired;
  /** Fields of the widest struct that a message of this type becomes. */
  int widest;

  private ProtobufType(String name) {
    this.name = name;
  }

  Member member(int number) {
    return number < byLowNumber.length ? byLowNumber[number] : byNumber.get(number);
  }

  /** Whether a field is required, here or further inside. */
  boolean hasRequired() {
    return hasRequired;
  }

  private boolean requires() {
    return members.stream().anyMatch(each -> each.isRequired || each.message != null && each.message.hasRequired);
  }

  /** The type of the messages, from the description's `types`, `enums` and `first`. */
  static ProtobufType first(JsonNode writer) {
    Map<String, ProtobufType> types = new HashMap<>();
    writer.get("types").fieldNames().forEachRemaining(name -> types.put(name, new ProtobufType(name)));
    for (ProtobufType type : types.values()) {
      type.readMembers(writer.get("types").get(type.name), writer.get("enums"), types);
    }
    for (boolean more = true; more;) { // types may contain each other
      more = false;
      for (ProtobufType type : types.values()) {
        boolean isNew = !type.hasRequired && type.requires();
        type.hasRequired |= isNew;
        more |= isNew;
      }
    }
    return types.get(writer.get("first").asText());
  }

  private void readMembers(JsonNode fields, JsonNode enums, Map<String, ProtobufType> types) {
    Map<String, List<Member>> oneofs = new HashMap<>();
    for (JsonNode json : fields) {
      Member member = new Member();
      member.name = json.get("name").asText();
      member.number = json.get("number").asInt();
      member.place = members.size();
      member.kind = Kind.valueOf(json.get("kind").asText().toUpperCase(java.util.Locale.ROOT));
      member.isRepeated = json.path("repeated").asBoolean();
      member.isMap = json.path("map").asBoolean();
      member.isRequired = json.path("required").asBoolean();
      member.message = types.get(json.path("type").asText());
      if (member.kind == Kind.ENUM) {
        JsonNode symbols = enums.get(json.get("enum").asText());
        member.isClosed = symbols.path("closed").asBoolean();
        member.symbols = new HashMap<>();
        symbols.get("values").forEach(each -> member.symbols.putIfAbsent(each.get(0).asInt(), UTF8String.fromString(each.get(1).asText())));
      }
      if (json.hasNonNull("default")) {
        member.absent = ProtobufReader.constant(member.kind, json.get("default").asText());
      }
      if (json.has("oneof")) {
        oneofs.computeIfAbsent(json.get("oneof").asText(), each -> new ArrayList<>()).add(member);
      }
      members.add(member);
      byNumber.put(member.number, member);
      if (member.number < byLowNumber.length) {
        byLowNumber[member.number] = member;
      }
    }
    places = members.size();
    for (List<Member> oneof : oneofs.values()) {
      for (Member member : oneof) {
        member.oneof = places;
      }
      places++;
    }
  }
}
