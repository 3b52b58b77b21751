package sluice;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.Table;
import org.apache.iceberg.spark.ScanTaskSetManager;
import org.apache.iceberg.spark.SparkSchemaUtil;
import org.apache.iceberg.spark.source.SparkRewriteTable;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The catalog of chosen files of tables, for reading: `spark.sql.catalog.….=sluice.StagedFiles`.
 *
 * <p>Iceberg's own table of chosen files, which compaction reads, hides the columns that say where a row is.
 */
public final class StagedFiles implements TableCatalog {
  private static final Map<String, Table> STAGED = new ConcurrentHashMap<>();

  /** Forgets those of a command that has ended. */
  static void clear() {
    forgetAll("");
  }

  /** Forgets those under ids that begin like this. */
  static void forgetAll(String prefix) {
    STAGED.forEach((id, table) -> {
      if (id.startsWith(prefix)) {
        ScanTaskSetManager.get().removeTasks(table, id);
        STAGED.remove(id);
      }
    });
  }

  private String name;

  static void stage(Table table, String id, List<FileScanTask> tasks) {
    ScanTaskSetManager.get().stageTasks(table, id, tasks);
    STAGED.put(id, table);
  }

  /** Forgets what was staged of this table under ids that begin like this, but for those that go on like that. */
  static void forget(Table table, String prefix, String kept) {
    for (String id : ScanTaskSetManager.get().fetchSetIds(table)) {
      if (id.startsWith(prefix) && !id.startsWith(kept)) {
        ScanTaskSetManager.get().removeTasks(table, id);
        STAGED.remove(id);
      }
    }
  }

  private static final class Files extends SparkRewriteTable {
    Files(Table table, String id) {
      super(table, id);
    }

    @Override
    public StructType schema() {
      return SparkSchemaUtil.convert(table().schema());
    }

    @Override
    public Column[] columns() {
      return CatalogV2Util.structTypeToV2Columns(schema());
    }
  }

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public org.apache.spark.sql.connector.catalog.Table loadTable(Identifier identifier) throws NoSuchTableException {
    Table table = STAGED.get(identifier.name());
    if (table == null) {
      throw new NoSuchTableException(identifier);
    }
    return new Files(table, identifier.name());
  }

  @Override
  public Identifier[] listTables(String[] namespace) {
    return new Identifier[0];
  }

  @Override
  public org.apache.spark.sql.connector.catalog.Table createTable(
      Identifier identifier, StructType schema, Transform[] partitions, Map<String, String> properties) {
    throw new UnsupportedOperationException("files of other tables are only read here");
  }

  @Override
  public org.apache.spark.sql.connector.catalog.Table alterTable(Identifier identifier, TableChange... changes) {
    throw new UnsupportedOperationException("files of other tables are only read here");
  }

  @Override
  public boolean dropTable(Identifier identifier) {
    return false;
  }

  @Override
  public void renameTable(Identifier identifier, Identifier renamed) {
    throw new UnsupportedOperationException("files of other tables are only read here");
  }
}
