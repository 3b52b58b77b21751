package sluice;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The secrets of masks, by their names. The engine puts them here, in the driver's JVM alone; functions that travel to executors take
 * theirs along. They are in no SQL text, plan or setting.
 */
public final class Keys {
  private static final Map<String, Ring> RINGS = new ConcurrentHashMap<>();

  private Keys() {}

  /** The values that one secret has had, the oldest first, each with what its id has behind that of the key; `current` is the place of the one that encrypts. */
  record Ring(List<String> suffixes, List<byte[]> secrets, int current) {}

  public static void put(String name, String secret) {
    put(name, List.of(""), List.of(secret), 0);
  }

  public static void put(String name, List<String> suffixes, List<String> secrets, int current) {
    RINGS.put(name, new Ring(List.copyOf(suffixes), secrets.stream().map(each -> each.getBytes(StandardCharsets.UTF_8)).toList(), current));
  }

  static void clear() {
    RINGS.clear();
  }

  static Ring get(String name) {
    Ring ring = RINGS.get(name);
    if (ring == null) {
      throw new IllegalStateException("the secret `" + name + "` of a mask was not given to this JVM");
    }
    return ring;
  }
}
