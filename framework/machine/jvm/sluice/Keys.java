package sluice;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The secrets of masks, by their names. The engine puts them here, in the driver's JVM alone; functions that travel to executors take
 * theirs along. They are in no SQL text, plan or setting.
 */
public final class Keys {
  private static final Map<String, byte[]> SECRETS = new ConcurrentHashMap<>();

  private Keys() {}

  public static void put(String name, String secret) {
    SECRETS.put(name, secret.getBytes(StandardCharsets.UTF_8));
  }

  static void clear() {
    SECRETS.clear();
  }

  static byte[] get(String name) {
    byte[] secret = SECRETS.get(name);
    if (secret == null) {
      throw new IllegalStateException("the secret `" + name + "` of a mask was not given to this JVM");
    }
    return secret;
  }
}
