package sluice;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The keys of one mask, by their ids. The first one hashes, so that hashes stay equal when a key is replaced; the current one encrypts; and
 * all of them reveal. An encrypted value says which key it is of:
 * `enc:ID:…` as text, and as bytes a zero, `SLX`, the length of the id, the id, and the rest.
 */
final class KeyRing {
  static final String TEXT = "enc:";
  static final byte[] BYTES = {0, 'S', 'L', 'X'};
  private static final byte[] DIGITS = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);

  private final Map<String, Cipher> ciphers = new LinkedHashMap<>();
  private final String first;
  private final String now;
  private final byte[] head;

  KeyRing(String[] ids, byte[][] secrets, int current) {
    for (int at = 0; at < ids.length; at++) {
      ciphers.put(ids[at], new Cipher(secrets[at]));
    }
    first = ids.length == 0 ? "" : ids[0]; // without a key, only what was never sealed can be opened
    now = ids.length == 0 ? "" : ids[current];
    byte[] id = now.getBytes(StandardCharsets.UTF_8);
    head = ByteBuffer.allocate(BYTES.length + 1 + id.length).put(BYTES).put((byte) id.length).put(id).array();
  }

  /** Hexadecimal digits, as text's bytes. */
  byte[] hash(byte[] value) {
    return hash(ciphers.get(first), value);
  }

  private static byte[] hash(Cipher cipher, byte[] value) {
    byte[] hash = cipher.hash(value);
    byte[] hex = new byte[2 * hash.length];
    for (int at = 0; at < hash.length; at++) {
      hex[2 * at] = DIGITS[hash[at] >> 4 & 15];
      hex[2 * at + 1] = DIGITS[hash[at] & 15];
    }
    return hex;
  }

  String encrypt(byte[] column, byte[] value) {
    return encrypt(now, column, value);
  }

  private String encrypt(String id, byte[] column, byte[] value) {
    byte[] hidden = ciphers.get(id).encrypt(column, value);
    return TEXT + id + ":" + Base64.getUrlEncoder().withoutPadding().encodeToString(hidden);
  }

  List<String> allHashes(byte[] value) {
    return ciphers.values().stream().map(cipher -> new String(hash(cipher, value), StandardCharsets.US_ASCII)).toList();
  }

  List<String> allEncrypted(byte[] column, byte[] value) {
    return ciphers.keySet().stream().map(id -> encrypt(id, column, value)).toList();
  }

  /** Null where it is no encrypted value, where its key is missing, or where it was changed. */
  String reveal(byte[] column, String text) {
    int end = text.startsWith(TEXT) ? text.indexOf(':', TEXT.length()) : -1;
    Cipher cipher = end < 0 ? null : ciphers.get(text.substring(TEXT.length(), end));
    if (cipher == null) {
      return null;
    }
    try {
      byte[] value = cipher.decrypt(column, Base64.getUrlDecoder().decode(text.substring(end + 1)));
      return value == null ? null : new String(value, StandardCharsets.UTF_8);
    } catch (IllegalArgumentException notBase64) {
      return null;
    }
  }

  byte[] seal(byte[] value) {
    byte[] hidden = ciphers.get(now).encrypt(BYTES, value);
    return ByteBuffer.allocate(head.length + hidden.length).put(head).put(hidden).array();
  }

  /** Bytes that were never sealed are as they are. */
  byte[] open(byte[] sealed) {
    int ids = BYTES.length + 1;
    if (sealed.length < ids || !Arrays.equals(BYTES, Arrays.copyOf(sealed, BYTES.length)) || sealed.length < ids + sealed[ids - 1]) {
      return sealed;
    }
    String id = new String(sealed, ids, sealed[ids - 1], StandardCharsets.UTF_8);
    Cipher cipher = ciphers.get(id);
    if (cipher == null) {
      throw new UnknownKey("a bad row is encrypted by the key `" + id + "`, which the mask does not list under `old`");
    }
    byte[] value = cipher.decrypt(BYTES, Arrays.copyOfRange(sealed, ids + id.length(), sealed.length));
    if (value == null) {
      throw new UnknownKey("a bad row is encrypted by another secret than that of the key `" + id + "`");
    }
    return value;
  }
}
