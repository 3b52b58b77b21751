package sluice;

import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Reads the wire format of one message into a value for each field: a number, a text, bytes, for a message again its values, and for
 * what is repeated a list. Null is absent.
 *
 * <p>A field that the schema does not have is refused, and so is one that is written otherwise than its type: the message is of
 * another schema. Of a field that stands there twice the last counts; messages are merged, as Protobuf says.
 */
final class ProtobufReader {
  private static final int DEEPEST = 100;
  private static final int SIZED = 2;

  private final BinaryInput in;

  ProtobufReader(BinaryInput in) {
    this.in = in;
  }

  /** Reads to the end of the input. */
  Object[] message(ProtobufType type) {
    Object[] values = values(type);
    read(type, values, 1);
    check(type, values);
    return values;
  }

  private Object[] values(ProtobufType type) {
    in.budget.spend(Math.max(type.members.size(), type.widest));
    return new Object[type.places];
  }

  private void read(ProtobufType type, Object[] values, int depth) {
    if (depth > DEEPEST) {
      throw BadMessage.undecodable("messages are nested deeper than " + DEEPEST + " levels");
    }
    while (in.remaining() > 0) {
      long tag = in.varint();
      long number = tag >>> 3;
      if (number == 0 || tag >>> 32 != 0) {
        throw BadMessage.undecodable("a field has no number");
      }
      ProtobufType.Member member = type.member((int) number);
      if (member == null) {
        throw BadMessage.undecodable("the schema has no field with the number " + number + " in `" + type.name + "`");
      }
      try {
        field(member, (int) tag & 7, values, depth);
      } catch (BadMessage bad) {
        throw bad.within(member.name);
      }
    }
  }

  private void field(ProtobufType.Member member, int wire, Object[] values, int depth) {
    boolean isPacked = member.isRepeated && wire == SIZED && member.kind.wire != SIZED;
    if (wire != member.kind.wire && !isPacked) {
      throw BadMessage.undecodable("wanted " + member.kind.name().toLowerCase(java.util.Locale.ROOT) + ", found the wire type " + wire);
    }
    if (member.isRepeated || member.isMap) {
      List<Object> items = items(values, member.place);
      if (isPacked) {
        int end = sized();
        while (in.remaining() > 0) {
          items.add(scalar(member));
        }
        in.end = end;
      } else {
        items.add(member.kind == ProtobufType.Kind.MESSAGE ? inner(member.message, values(member.message), depth) : scalar(member));
      }
      return;
    }
    if (member.oneof != ProtobufType.NONE) {
      Integer before = (Integer) values[member.oneof];
      if (before != null && before != member.place) {
        values[before] = null;
      }
      values[member.oneof] = member.place;
    }
    if (member.kind == ProtobufType.Kind.MESSAGE) {
      Object before = values[member.place];
      values[member.place] = inner(member.message, before == null ? values(member.message) : (Object[]) before, depth);
    } else {
      values[member.place] = scalar(member);
    }
  }

  @SuppressWarnings("unchecked")
  private static List<Object> items(Object[] values, int place) {
    if (values[place] == null) {
      values[place] = new ArrayList<>();
    }
    return (List<Object>) values[place];
  }

  private Object[] inner(ProtobufType type, Object[] values, int depth) {
    int end = sized();
    read(type, values, depth + 1);
    in.end = end;
    return values;
  }

  /** Ends the input behind so many bytes as are said; the end that it had before. */
  private int sized() {
    long length = in.varint();
    int start = in.take(length);
    int end = in.end;
    in.end = in.at;
    in.at = start;
    return end;
  }

  private Object scalar(ProtobufType.Member member) {
    switch (member.kind) {
      case DOUBLE:
        return Double.longBitsToDouble(in.fixed64());
      case FLOAT:
        return Float.intBitsToFloat(in.fixed32());
      case INT32:
        return (int) in.varint();
      case SINT32:
        int folded = (int) in.varint();
        return folded >>> 1 ^ -(folded & 1);
      case SFIXED32:
        return in.fixed32();
      case UINT32:
        return in.varint() & 0xFFFFFFFFL;
      case FIXED32:
        return in.fixed32() & 0xFFFFFFFFL;
      case SINT64:
        return BinaryInput.unfolded(in.varint());
      case FIXED64:
      case SFIXED64:
        return in.fixed64();
      case BOOL:
        return in.varint() != 0;
      case ENUM:
        return symbol(member, (int) in.varint());
      case STRING:
        return in.text(in.varint());
      case BYTES:
        return in.copy(in.varint());
      default:
        return in.varint();
    }
  }

  private static UTF8String symbol(ProtobufType.Member member, int number) {
    UTF8String symbol = member.symbols.get(number);
    if (symbol == null && member.isClosed) {
      throw BadMessage.undecodable("the enum has no value " + number);
    }
    return symbol == null ? UTF8String.fromString(Integer.toString(number)) : symbol;
  }

  /** A default of the schema, as it would be read. */
  static Object constant(ProtobufType.Kind kind, String text) {
    switch (kind) {
      case DOUBLE:
        return Double.valueOf(text);
      case FLOAT:
        return Float.valueOf(text);
      case INT32:
      case SINT32:
      case SFIXED32:
        return Integer.valueOf(text);
      case UINT64:
      case FIXED64:
        return Long.parseUnsignedLong(text);
      case BOOL:
        return Boolean.valueOf(text);
      case ENUM:
      case STRING:
        return UTF8String.fromString(text);
      case BYTES:
        return Base64.getDecoder().decode(text);
      default:
        return Long.valueOf(text);
    }
  }

  /** That every required field is there. */
  private static void check(ProtobufType type, Object[] values) {
    if (!type.hasRequired()) {
      return;
    }
    for (ProtobufType.Member member : type.members) {
      Object value = values[member.place];
      if (value == null && member.isRequired) {
        throw BadMessage.undecodable("the field is required and missing").within(member.name);
      }
      if (value != null && member.message != null) {
        List<?> messages = value instanceof List ? (List<?>) value : List.of(value);
        messages.forEach(each -> check(member.message, (Object[]) each));
      }
    }
  }
}
