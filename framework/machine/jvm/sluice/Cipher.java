package sluice;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Arrays;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * Hashing and encryption by one secret. Both are deterministic: equal values give equal results, so that rows can still be joined.
 *
 * <p>Encryption is AES in counter mode, whose start is an HMAC of the column and the value (a synthetic initialization vector): two
 * values never share a stream, and a changed ciphertext is noticed. Each purpose has a key of its own, derived from the secret.
 * Not safe for several threads.
 */
final class Cipher {
  private static final int IV = 16;

  private final Hmac hashing;
  private final Hmac signing;
  private final SecretKeySpec encrypting;
  private final javax.crypto.Cipher aes;

  Cipher(byte[] secret) {
    try {
      Hmac deriving = new Hmac(secret);
      hashing = new Hmac(deriving.of("sluice hmac".getBytes(StandardCharsets.UTF_8)));
      signing = new Hmac(deriving.of("sluice siv".getBytes(StandardCharsets.UTF_8)));
      encrypting = new SecretKeySpec(deriving.of("sluice encrypt".getBytes(StandardCharsets.UTF_8)), "AES");
      aes = javax.crypto.Cipher.getInstance("AES/CTR/NoPadding");
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException(error);
    }
  }

  /** 16 bytes, the same for equal values of all columns. */
  byte[] hash(byte[] value) {
    return Arrays.copyOf(hashing.of(value), IV);
  }

  byte[] encrypt(byte[] column, byte[] value) {
    byte[] iv = iv(column, value);
    byte[] hidden = stream(iv, value, 0);
    return ByteBuffer.allocate(IV + hidden.length).put(iv).put(hidden).array();
  }

  /** Null where the bytes were not encrypted by this secret for this column. */
  byte[] decrypt(byte[] column, byte[] encrypted) {
    if (encrypted.length < IV) {
      return null;
    }
    byte[] iv = Arrays.copyOf(encrypted, IV);
    byte[] value = stream(iv, encrypted, IV);
    return MessageDigest.isEqual(iv, iv(column, value)) ? value : null;
  }

  /** The length of the column's name comes first, so that no part of it can be taken for a part of the value. */
  private byte[] iv(byte[] column, byte[] value) {
    return Arrays.copyOf(signing.of(ByteBuffer.allocate(4).putInt(column.length).array(), column, value), IV);
  }

  private byte[] stream(byte[] iv, byte[] bytes, int from) {
    try {
      aes.init(javax.crypto.Cipher.ENCRYPT_MODE, encrypting, new IvParameterSpec(iv));
      return aes.doFinal(bytes, from, bytes.length - from);
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException(error);
    }
  }
}
