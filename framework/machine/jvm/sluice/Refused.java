package sluice;

import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
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
    if (!log.isEmpty() && catalog instanceof BaseMetastoreTableOperations) {
      TableMetadata now = catalog.refresh();
      String base = log.get(log.size() - 1).file();
      deleteBetween(catalog, own(now), base, Math.min(version(base) + 1, version(now.metadataFileLocation())), left -> isSame(left, refused));
    }
  }

  /** The file of the metadata that the table has now. */
  public String current() {
    return catalog.refresh().metadataFileLocation();
  }

  /**
   * Deletes the files that a compaction has left, which Iceberg commits again after each refusal: those behind the metadata `since` that the
   * table cannot have any more, and that have a compaction which the metadata before them had not. Another catalog makes none.
   */
  public void deleteCompactions(String since, String property) {
    TableMetadata now = catalog.refresh();
    deleteBetween(catalog, own(now), since, version(now.metadataFileLocation()), left -> {
      List<MetadataLogEntry> log = left.previousFiles();
      TableMetadata before = log.isEmpty() ? null : TableMetadataParser.read(catalog.io(), log.get(log.size() - 1).file());
      return before != null
          && left.snapshots().stream()
              .anyMatch(each -> each.summary().containsKey(property) && before.snapshot(each.snapshotId()) == null);
    });
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
    try {
      deleteBetween(catalog, Set.of(), base, version(base) + 1, isOwn);
    } catch (RuntimeException ignored) { // then it stays, and others are taken to need what it names
    }
  }

  /** The names of the files of the metadata that the table has and had. */
  private static Set<String> own(TableMetadata now) {
    Stream<String> before = now.previousFiles().stream().map(MetadataLogEntry::file);
    return Stream.concat(before, Stream.of(now.metadataFileLocation())).map(Refused::name).collect(Collectors.toSet());
  }

  /** Deletes one's own metadata behind that of `base`, up to a version, without those files that the table has or had. */
  private static void deleteBetween(
      TableOperations catalog, Set<String> ofTable, String base, int last, Predicate<TableMetadata> isOwn) {
    if (!(catalog instanceof BaseMetastoreTableOperations) || !(catalog.io() instanceof SupportsPrefixOperations files)) {
      return;
    }
    for (FileInfo file : files.listPrefix(base.substring(0, base.lastIndexOf('/') + 1))) {
      int version = version(file.location());
      if (version > version(base)
          && version <= last
          && !ofTable.contains(name(file.location()))
          && isOwn.test(TableMetadataParser.read(catalog.io(), file.location()))) {
        catalog.io().deleteFile(file.location());
      }
    }
  }

  private static String name(String location) {
    return location.substring(location.lastIndexOf('/') + 1);
  }

  /** The number at the beginning of a metadata file's name; -1 for other files. */
  private static int version(String location) {
    String name = name(location);
    int end = name.indexOf('-');
    boolean isNumber = end > 0 && end < 10 && name.endsWith(".metadata.json") && name.substring(0, end).chars().allMatch(Character::isDigit);
    return isNumber ? Integer.parseInt(name.substring(0, end)) : -1;
  }
}
