package sluice;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;

/** HMAC with SHA-256 of many short values. What the key alone decides is computed once: for a short value that is half of the work. */
final class Hmac {
  private static final int BLOCK = 64;
  private static final int INNER = 0x36;
  private static final int OUTER = 0x5c;

  private final byte[] key;
  private final MessageDigest inner;
  private final MessageDigest outer;

  Hmac(byte[] key) {
    this.key = Arrays.copyOf(key.length > BLOCK ? sha256().digest(key) : key, BLOCK);
    inner = begun(INNER);
    outer = begun(OUTER);
  }

  /** The HMAC of these parts, one behind the other. */
  byte[] of(byte[]... parts) {
    MessageDigest digest = copy(inner, INNER);
    for (byte[] part : parts) {
      digest.update(part);
    }
    return copy(outer, OUTER).digest(digest.digest());
  }

  private MessageDigest begun(int padding) {
    byte[] block = new byte[BLOCK];
    for (int at = 0; at < BLOCK; at++) {
      block[at] = (byte) (key[at] ^ padding);
    }
    MessageDigest digest = sha256();
    digest.update(block);
    return digest;
  }

  private MessageDigest copy(MessageDigest begun, int padding) {
    try {
      return (MessageDigest) begun.clone();
    } catch (CloneNotSupportedException notOfThisProvider) {
      return begun(padding);
    }
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException error) {
      throw new IllegalStateException(error); // every Java has it
    }
  }
}
