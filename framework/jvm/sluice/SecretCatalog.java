package sluice;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.spark.SparkCatalog;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Iceberg's catalog of Spark, with those of its settings that are secret. The engine puts them here, in the driver's JVM alone, so that
 * they are in no setting of Spark, which its pages and logs show.
 */
public final class SecretCatalog extends SparkCatalog {
  private static final Map<String, Map<String, String>> SECRETS = new ConcurrentHashMap<>();

  public static void put(String catalog, String setting, String secret) {
    if (setting.startsWith("aws.")) { // AWS' library reads these two where Java keeps properties
      System.setProperty(setting, secret);
    } else {
      SECRETS.computeIfAbsent(catalog, name -> new ConcurrentHashMap<>()).put(setting, secret);
    }
  }

  @Override
  protected Catalog buildIcebergCatalog(String name, CaseInsensitiveStringMap options) {
    Map<String, String> all = new HashMap<>(options.asCaseSensitiveMap());
    all.putAll(SECRETS.getOrDefault(name, Map.of()));
    return super.buildIcebergCatalog(name, new CaseInsensitiveStringMap(all));
  }
}
