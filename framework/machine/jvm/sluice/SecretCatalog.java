package sluice;

import java.io.Closeable;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.spark.SparkCatalog;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Iceberg's catalog of Spark, with those of its settings that are secret. The engine puts them here, in the driver's JVM alone, so that
 * they are in no setting of Spark, which its pages and logs show.
 */
public final class SecretCatalog extends SparkCatalog {
  private static final String NAME = "sluice.secrets"; // a setting: the name under which its secrets are here
  private static final Map<String, Map<String, String>> SECRETS = new ConcurrentHashMap<>();
  private static final Map<String, Optional<String>> PROPERTIES = new ConcurrentHashMap<>(); // with what was there before
  private static final Map<SparkSession, Queue<Closeable>> OPEN = new ConcurrentHashMap<>();

  public static void put(String name, String setting, String secret) {
    if (setting.startsWith("aws.")) { // AWS' library reads these two where Java keeps properties
      PROPERTIES.computeIfAbsent(setting, each -> Optional.ofNullable(System.getProperty(each)));
      System.setProperty(setting, secret);
    } else {
      SECRETS.computeIfAbsent(name, each -> new ConcurrentHashMap<>()).put(setting, secret);
    }
  }

  @Override
  protected Catalog buildIcebergCatalog(String name, CaseInsensitiveStringMap options) {
    Map<String, String> all = new HashMap<>(options.asCaseSensitiveMap());
    all.putAll(SECRETS.getOrDefault(all.getOrDefault(NAME, ""), Map.of()));
    Catalog catalog = super.buildIcebergCatalog(name, new CaseInsensitiveStringMap(all));
    if (catalog instanceof Closeable closeable) {
      OPEN.computeIfAbsent(SparkSession.active(), each -> new ConcurrentLinkedQueue<>()).add(closeable);
    }
    return catalog;
  }

  /** Gives AWS' library the login that it had. Java has one for all, so each table's work begins with this. */
  public static void logOut() {
    PROPERTIES.forEach(
        (setting, before) -> before.ifPresentOrElse(was -> System.setProperty(setting, was), () -> System.clearProperty(setting)));
    PROPERTIES.clear();
  }

  /** Forgets all secrets, and closes the connections of the catalogs of a session that has ended. */
  public static void forget(SparkSession session) {
    forgetSecrets();
    closeCatalogs(session);
  }

  /** Forgets all secrets, and closes the connections of the catalogs of all sessions. */
  static void forgetAll() {
    forgetSecrets();
    OPEN.keySet().forEach(SecretCatalog::closeCatalogs);
  }

  private static void forgetSecrets() {
    SECRETS.clear();
    Keys.clear();
    logOut();
  }

  private static void closeCatalogs(SparkSession session) {
    Queue<Closeable> open = OPEN.remove(session);
    if (open != null) {
      open.forEach(SecretCatalog::close);
    }
  }

  private static void close(Closeable catalog) {
    try {
      catalog.close();
    } catch (IOException | RuntimeException error) {
      System.err.println("a catalog does not close: " + error);
    }
  }
}
