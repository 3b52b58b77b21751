package sluice;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.SerializableTable;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotParser;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.UpdateRequirements;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.LocationProvider;

/**
 * A table as one attempt sees it: the metadata that was loaded when it began, and what the attempt has changed since. That stays in this
 * process until `publish`, the only commit of which the catalog hears.
 *
 * <p>Nothing here loads the table again, repeats a commit, puts it onto another one or deletes a file of a commit by itself: an answer
 * that was lost is judged by who called, on the table as it is by then.
 */
public final class Unpublished implements TableOperations {
  private static final Map<String, Table> TABLES = new ConcurrentHashMap<>();

  private TableOperations catalog;
  private final Table table;
  private final String key;
  private TableMetadata base;
  private TableMetadata now;
  private TableOperations files;
  private boolean isInDoubt; // whether a commit may still come

  private Unpublished(Table loaded, String attempt) {
    catalog = ((HasTableOperations) loaded).operations();
    base = catalog.current();
    table = new AttemptTable(this, loaded.name());
    key = key(loaded.name(), attempt);
    become(base);
  }

  /** Begins with the metadata of a table that was just loaded, and that nobody else uses. */
  public static Unpublished begin(Table loaded, String attempt) {
    Unpublished begun = new Unpublished(loaded, attempt);
    TABLES.put(begun.key, begun.table);
    return begun;
  }

  /** The table of this name, such as `lake.shop.orders`, as the attempt sees it; null where the attempt has none. */
  static Table of(String name, String attempt) {
    return TABLES.get(key(name, attempt));
  }

  /** Forgets those of a command that has ended. */
  static void clear() {
    TABLES.clear();
  }

  private static String key(String name, String attempt) {
    return attempt + " " + name;
  }

  public void end() {
    TABLES.remove(key);
  }

  /** With all that Iceberg's tables have: appends, properties, branches, tags and scans. */
  public Table table() {
    return table;
  }

  /** One commit, which is refused if the table is not as it was when this began, or when `putOnto` was called last. */
  public void publish() {
    becomeOn(base);
    try {
      catalog.commit(base, now);
    } catch (CommitFailedException refused) {
      if (!isInDoubt) {
        deleteRefused();
      }
      throw refused;
    } catch (RuntimeException unknown) {
      isInDoubt = true;
      throw unknown;
    }
  }

  /** Deletes the metadata of a commit that was refused, which is known by a snapshot that no table has. */
  private void deleteRefused() {
    Refused.deleteAfter(catalog, base.metadataFileLocation(), this::isOwn);
  }

  private boolean isOwn(TableMetadata metadata) {
    return now.snapshots().stream().anyMatch(each -> base.snapshot(each.snapshotId()) == null && metadata.snapshot(each.snapshotId()) != null);
  }

  /**
   * Whether no commit of this attempt was done or will be: main has moved, and another snapshot has the number of the first one here, which
   * no catalog gives twice.
   */
  public boolean isOvertakenIn(Table loaded) {
    long number = base.lastSequenceNumber() + 1;
    for (Snapshot snapshot : loaded.snapshots()) {
      if (snapshot.sequenceNumber() == number) {
        return now.snapshot(snapshot.snapshotId()) == null
            && loaded.currentSnapshot().snapshotId() != base.currentSnapshot().snapshotId();
      }
    }
    return false;
  }

  /**
   * Puts the changes onto the table as it was loaded by now, as the server of a REST catalog does it: refused if a snapshot was added since,
   * or if a branch or tag that they set is not where it was. No file is written again.
   */
  public void putOnto(Table loaded) {
    catalog = ((HasTableOperations) loaded).operations();
    TableMetadata newer = catalog.current();
    UpdateRequirements.forUpdateTable(base, now.changes()).forEach(requirement -> requirement.validate(newer));
    becomeOn(newer);
  }

  /** Makes the changes on this metadata, with the time of now: by it people find what readers saw when. */
  private void becomeOn(TableMetadata metadata) {
    TableMetadata.Builder changed = TableMetadata.buildFrom(metadata);
    now.changes().forEach(change -> later(change).applyTo(changed));
    base = metadata;
    become(changed.build());
  }

  private static MetadataUpdate later(MetadataUpdate change) {
    if (!(change instanceof MetadataUpdate.AddSnapshot added)) {
      return change;
    }
    String text = SnapshotParser.toJson(added.snapshot());
    String time = "\"timestamp-ms\":" + System.currentTimeMillis();
    return new MetadataUpdate.AddSnapshot(SnapshotParser.fromJson(text.replaceFirst("\"timestamp-ms\":\\d+", time)));
  }

  /** Deletes the files that only this attempt has. For who knows that no commit of it was done or will be. */
  public void deleteFiles() {
    for (Snapshot snapshot : now.snapshots()) {
      if (base.snapshot(snapshot.snapshotId()) == null) {
        rows(snapshot).map(ContentFile::location).distinct().forEach(io()::deleteFile);
        for (ManifestFile manifest : manifests(snapshot)) {
          io().deleteFile(manifest.path());
        }
        io().deleteFile(snapshot.manifestListLocation());
      }
    }
  }

  private Stream<ContentFile<?>> rows(Snapshot snapshot) {
    return Stream.concat(stream(snapshot.addedDataFiles(io())), stream(snapshot.addedDeleteFiles(io())));
  }

  private static <F extends ContentFile<?>> Stream<ContentFile<?>> stream(Iterable<F> files) {
    Stream.Builder<ContentFile<?>> all = Stream.builder();
    files.forEach(all);
    return all.build();
  }

  private List<ManifestFile> manifests(Snapshot snapshot) {
    return snapshot.allManifests(io()).stream().filter(manifest -> manifest.snapshotId() == snapshot.snapshotId()).toList();
  }

  private void become(TableMetadata metadata) {
    now = metadata;
    files = catalog.temp(metadata);
  }

  @Override
  public synchronized TableMetadata current() {
    return now;
  }

  @Override
  public TableMetadata refresh() {
    return current();
  }

  @Override
  public synchronized void commit(TableMetadata before, TableMetadata changed) {
    if (before != now) {
      throw new CommitFailedException("the attempt itself has changed the table meanwhile");
    }
    become(changed);
  }

  @Override
  public FileIO io() {
    return files.io();
  }

  @Override
  public EncryptionManager encryption() {
    return files.encryption();
  }

  @Override
  public String metadataFileLocation(String name) {
    return files.metadataFileLocation(name);
  }

  @Override
  public LocationProvider locationProvider() {
    return files.locationProvider();
  }

  @Override
  public long newSnapshotId() {
    return files.newSnapshotId();
  }

  /** The table with commits that remove files of which they leave no row. */
  private static final class AttemptTable extends BaseTable {
    AttemptTable(TableOperations operations, String name) {
      super(operations, name);
    }

    @Override
    public RowDelta newRowDelta() {
      return new Marking(name(), operations());
    }

    private Object writeReplace() { // Iceberg's own is not inherited by another package
      return SerializableTable.copyOf(this);
    }
  }
}
