package sluice;

import java.util.List;
import java.util.Locale;
import java.util.function.Predicate;
import org.apache.iceberg.BaseMetastoreTableOperations;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadata.MetadataLogEntry;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.io.FileInfo;
import org.apache.iceberg.io.SupportsPrefixOperations;

/** The metadata of commits that were refused, which some catalogs leave: it names files that others could never delete. */
public final class Refused {
  private final TableOperations catalog;

  public Refused(Table table) {
    catalog = ((HasTableOperations) table).operations();
  }

  /** The metadata that a transaction is about to commit. */
  public TableMetadata metadata(Table ofTransaction) {
    return ((HasTableOperations) ofTransaction).operations().current();
  }

  /** Deletes the file that a transaction's commit has left. It is known by its content: another commit has other properties or times. */
  public void delete(TableMetadata refused) {
    List<MetadataLogEntry> log = refused.previousFiles();
    if (!log.isEmpty()) {
      deleteAfter(catalog, log.get(log.size() - 1).file(), left -> isSame(left, refused));
    }
  }

  private static boolean isSame(TableMetadata left, TableMetadata refused) {
    return left.lastUpdatedMillis() == refused.lastUpdatedMillis()
        && left.properties().equals(refused.properties())
        && left.refs().equals(refused.refs())
        && ids(left).equals(ids(refused));
  }

  private static List<Long> ids(TableMetadata metadata) {
    return metadata.snapshots().stream().map(each -> each.snapshotId()).sorted().toList();
  }

  /** Deletes the metadata that was to follow that of `base`, as far as it is one's own. */
  static void deleteAfter(TableOperations catalog, String base, Predicate<TableMetadata> isOwn) {
    if (!(catalog instanceof BaseMetastoreTableOperations) || !(catalog.io() instanceof SupportsPrefixOperations files)) {
      return;
    }
    try {
      int name = base.lastIndexOf('/') + 1;
      int version = Integer.parseInt(base.substring(name, base.indexOf('-', name)));
      String next = String.format(Locale.ROOT, "/%05d-", version + 1);
      for (FileInfo file : files.listPrefix(base.substring(0, name))) {
        if (file.location().contains(next) && isOwn.test(TableMetadataParser.read(catalog.io(), file.location()))) {
          catalog.io().deleteFile(file.location());
        }
      }
    } catch (RuntimeException ignored) { // then it stays, and others are taken to need what it names
    }
  }
}
