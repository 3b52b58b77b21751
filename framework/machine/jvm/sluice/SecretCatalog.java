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
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Iceberg's catalog of Spark, with those of its settings that are secret. The engine puts them here, in the driver's JVM alone, so that
 * they are in no setting of Spark, which its pages and logs show. The branches of an attempt are those of the table as it sees it.
 */
public final class SecretCatalog extends SparkCatalog {
  private static final String BRANCH = "branch_"; // Iceberg's prefix of the name of a branch
  private static final String NAME = "sluice.secrets"; // a setting: the name under which its secrets are here
  private static final Map<String, Map<String, String>> SECRETS = new ConcurrentHashMap<>();
  private static final Map<String, Optional<String>> PROPERTIES = new ConcurrentHashMap<>(); // with what was there before
  private static final Map<SparkSession, Queue<Closeable>> OPEN = new ConcurrentHashMap<>();

  private CaseInsensitiveStringMap options;

  public static void put(String name, String setting, String secret) {
    if (setting.startsWith("aws.")) { // AWS' library reads these two where Java keeps properties
      PROPERTIES.computeIfAbsent(setting, each -> Optional.ofNullable(System.getProperty(each)));
      System.setProperty(setting, secret);
    } else {
      SECRETS.computeIfAbsent(name, each -> new ConcurrentHashMap<>()).put(setting, secret);
    }
  }

  /** Opens a catalog of a session again, by secrets that were replaced. Tables that were loaded before keep those of before. */
  public static void renew(SparkSession session, String name) {
    if (session.sessionState().catalogManager().catalog(name) instanceof SecretCatalog catalog) {
      catalog.initialize(name, catalog.options);
    }
  }

  @Override
  protected Catalog buildIcebergCatalog(String name, CaseInsensitiveStringMap newOptions) {
    options = newOptions;
    Map<String, String> all = new HashMap<>(options.asCaseSensitiveMap());
    all.putAll(SECRETS.getOrDefault(all.getOrDefault(NAME, ""), Map.of()));
    Catalog catalog = super.buildIcebergCatalog(name, new CaseInsensitiveStringMap(all));
    if (catalog instanceof Closeable closeable) {
      OPEN.computeIfAbsent(SparkSession.active(), each -> new ConcurrentLinkedQueue<>()).add(closeable);
    }
    return catalog;
  }

  /** `branch_…_ID` is a branch that the attempt ID has made, and `branch_…@ID` one that was there: both as the attempt sees its table. */
  @Override
  public Table loadTable(Identifier name) throws NoSuchTableException {
    String branch = name.name().startsWith(BRANCH) ? name.name().substring(BRANCH.length()) : "";
    int made = branch.lastIndexOf('_');
    int seen = branch.lastIndexOf('@');
    org.apache.iceberg.Table own =
        Unpublished.of(name() + "." + String.join(".", name.namespace()), branch.substring(Math.max(made, seen) + 1));
    return own == null ? super.loadTable(name) : SparkTable.create(own, seen > made ? branch.substring(0, seen) : branch);
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

  /** Closes the connections of the catalogs of a session that has ended beside others. */
  public static void closeCatalogs(SparkSession session) {
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
