package sluice;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.text.Normalizer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * SQL functions that mask a text or the bytes of a message: `hmac`, `encrypt`, `ip`, `seal`, `open` and `mention`. A function's name is
 * its description, as JSON: what it does as `mask`, the ids of its `keys` with the names of their secrets, and what else it needs.
 *
 * <p>The secrets are taken when the function is bound, and travel with it; no text that Spark shows has them.
 */
public abstract class Mask<T> implements ScalarFunction<T> {
  final String description;
  final String does;
  private final String[] ids;
  final byte[][] secrets;
  private final int current; // the place of the key that encrypts
  private transient ThreadLocal<KeyRing> ring;

  Mask(String description, JsonNode options) {
    this.description = description;
    does = options.path("mask").asText();
    List<String> allIds = new ArrayList<>();
    List<byte[]> allSecrets = new ArrayList<>();
    int first = 0;
    for (JsonNode key : options.path("keys")) {
      Keys.Ring ring = Keys.get(key.get(1).asText());
      first = allIds.isEmpty() ? ring.current() : first;
      ring.suffixes().forEach(suffix -> allIds.add(key.get(0).asText() + suffix));
      allSecrets.addAll(ring.secrets());
    }
    ids = allIds.toArray(String[]::new);
    secrets = allSecrets.toArray(byte[][]::new);
    current = first;
  }

  static BoundFunction of(String description) {
    try {
      JsonNode options = new ObjectMapper().readTree(description);
      return switch (options.path("mask").asText()) {
        case "seal", "open" -> new OfBytes(description, options);
        case "mention" -> new Mention(description, options);
        default -> new OfText(description, options);
      };
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException("no description of a mask: " + description);
    }
  }

  /** All that a table can have for one text: masked by the function of this description, with each of its keys. */
  public static List<String> texts(String description, String text) {
    return ((OfText) of(description)).all(UTF8String.fromString(text));
  }

  KeyRing ring() {
    if (ring == null) {
      ring = ThreadLocal.withInitial(() -> new KeyRing(ids, secrets, current));
    }
    return ring.get();
  }

  @Override
  public boolean isResultNullable() {
    return true;
  }

  @Override
  public String name() {
    return does;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Mask<?> mask
        && mask.description.equals(description)
        && mask.current == current
        && Arrays.equals(mask.ids, ids)
        && Arrays.deepEquals(mask.secrets, secrets); // keys are replaced while a session lives
  }

  @Override
  public int hashCode() {
    return description.hashCode();
  }

  @Override
  public String toString() {
    return does;
  }

  @Override
  public String canonicalName() {
    return "sluice.mask." + description;
  }

  public static final class OfText extends Mask<UTF8String> {
    private final byte[] column;
    private final boolean isNumber;
    private final int bits;

    OfText(String description, JsonNode options) {
      super(description, options);
      column = options.path("column").asText().getBytes(StandardCharsets.UTF_8);
      isNumber = options.path("number").asBoolean();
      bits = options.path("bits").asInt();
    }

    public UTF8String invoke(UTF8String text) {
      if (text == null) {
        return null;
      }
      if (does.equals("ip")) {
        return UTF8String.fromString(Networks.of(text.toString(), bits));
      }
      byte[] value = plain(text);
      return does.equals("hmac") ? UTF8String.fromBytes(ring().hash(value)) : UTF8String.fromString(ring().encrypt(column, value));
    }

    List<String> all(UTF8String text) {
      byte[] value = plain(text);
      return does.equals("hmac") ? ring().allHashes(value) : ring().allEncrypted(column, value);
    }

    private byte[] plain(UTF8String text) {
      return isNumber ? number(text.toString()) : text(text);
    }

    /** Texts that look the same are the same: é in one character and in two. */
    private static byte[] text(UTF8String text) {
      byte[] bytes = text.getBytes();
      for (byte each : bytes) {
        if (each < 0) {
          return Normalizer.normalize(text.toString(), Normalizer.Form.NFC).getBytes(StandardCharsets.UTF_8);
        }
      }
      return bytes;
    }

    /** 1, 1.0 and 1.00 are the same. */
    private static byte[] number(String text) {
      try {
        BigDecimal number = new BigDecimal(text);
        text = number.signum() == 0 ? "0" : number.stripTrailingZeros().toPlainString();
      } catch (NumberFormatException notFinite) {
        // NaN and Infinity are as they are.
      }
      return text.getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public UTF8String produceResult(InternalRow input) {
      return invoke(input.isNullAt(0) ? null : input.getUTF8String(0));
    }

    @Override
    public DataType[] inputTypes() {
      return new DataType[] {DataTypes.StringType};
    }

    @Override
    public DataType resultType() {
      return DataTypes.StringType;
    }
  }

  public static final class OfBytes extends Mask<byte[]> {
    OfBytes(String description, JsonNode options) {
      super(description, options);
    }

    public byte[] invoke(byte[] bytes) {
      return bytes == null ? null : does.equals("seal") ? ring().seal(bytes) : ring().open(bytes);
    }

    @Override
    public byte[] produceResult(InternalRow input) {
      return invoke(input.isNullAt(0) ? null : input.getBinary(0));
    }

    @Override
    public DataType[] inputTypes() {
      return new DataType[] {DataTypes.BinaryType};
    }

    @Override
    public DataType resultType() {
      return DataTypes.BinaryType;
    }
  }
}
