package sluice;

import java.io.Closeable;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.spark.SparkCatalog;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Iceberg's catalog of Spark, with those of its settings that are secret. The engine puts them here, in the driver's JVM alone, so that
 * they are in no setting of Spark, which its pages and logs show.
 */
public final class SecretCatalog extends SparkCatalog {
  private static final String NAME = "sluice.secrets"; // a setting: the name under which its secrets are here
  private static final Map<String, Map<String, String>> SECRETS = new ConcurrentHashMap<>();
  private static final Set<String> PROPERTIES = ConcurrentHashMap.newKeySet();
  private static final Queue<Closeable> OPEN = new ConcurrentLinkedQueue<>();

  public static void put(String name, String setting, String secret) {
    if (setting.startsWith("aws.")) { // AWS' library reads these two where Java keeps properties
      System.setProperty(setting, secret);
      PROPERTIES.add(setting);
    } else {
      SECRETS.computeIfAbsent(name, each -> new ConcurrentHashMap<>()).put(setting, secret);
    }
  }

  @Override
  protected Catalog buildIcebergCatalog(String name, CaseInsensitiveStringMap options) {
    Map<String, String> all = new HashMap<>(options.asCaseSensitiveMap());
    all.putAll(SECRETS.getOrDefault(all.getOrDefault(NAME, ""), Map.of()));
    Catalog catalog = super.buildIcebergCatalog(name, new CaseInsensitiveStringMap(all));
    if (Warm.serves() && catalog instanceof Closeable closeable) { // else they end with the JVM, or are closed by who loads them
      OPEN.add(closeable);
    }
    return catalog;
  }

  /** Forgets the secrets of a command that has ended, and closes its catalogs' connections. */
  static void clear() {
    SECRETS.clear();
    PROPERTIES.forEach(System::clearProperty);
    PROPERTIES.clear();
    for (Closeable catalog = OPEN.poll(); catalog != null; catalog = OPEN.poll()) {
      try {
        catalog.close();
      } catch (IOException | RuntimeException error) {
        System.err.println("a catalog does not close: " + error);
      }
    }
  }
}
