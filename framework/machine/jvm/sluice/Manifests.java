package sluice;

import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.Table;

/** Lists of a table's files. */
public final class Manifests {
  private Manifests() {}

  /**
   * Writes lists again that name deleted files: these have the bounds of the rows there were. Iceberg lets them stand until it joins
   * lists.
   */
  public static void withoutDeleted(Table table) {
    if (table.currentSnapshot().dataManifests(table.io()).stream().anyMatch(ManifestFile::hasDeletedFiles)) {
      table.rewriteManifests().clusterBy(file -> "").rewriteIf(ManifestFile::hasDeletedFiles).commit();
    }
  }
}
