package sluice;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.FieldMetrics;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.MetricsConfig;
import org.apache.iceberg.PartitionKey;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.encryption.EncryptedOutputFile;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.parquet.ParquetSchemaUtil;
import org.apache.iceberg.parquet.ParquetUtil;
import org.apache.iceberg.shaded.org.apache.parquet.column.ColumnDescriptor;
import org.apache.iceberg.shaded.org.apache.parquet.column.ParquetProperties;
import org.apache.iceberg.shaded.org.apache.parquet.hadoop.ParquetFileWriter;
import org.apache.iceberg.shaded.org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.iceberg.shaded.org.apache.parquet.schema.MessageType;
import org.apache.iceberg.util.PropertyUtil;

/** A file of a table, made of columns. Parquet's own writer puts the pages into the file, and Iceberg makes its statistics of the footer. */
final class ColumnFile {
  private static final int MOST_PADDING = 0; // as Iceberg's own writer
  private static final int LONGEST_BOUND = ParquetProperties.DEFAULT_COLUMN_INDEX_TRUNCATE_LENGTH;

  private final Table table;
  private final PartitionKey partition; // null: the table has none
  private final EncryptedOutputFile target;
  private final FileSettings settings;
  private final List<ColumnDescriptor> descriptors;
  private final ColumnBounds[] bounds;
  private final ParquetFileWriter writer;
  private ColumnPages[] columns;
  private long rows; // of the row group

  ColumnFile(Table table, PartitionKey partition, EncryptedOutputFile target, FileSettings settings) throws IOException {
    this.table = table;
    this.partition = partition;
    this.target = target;
    this.settings = settings;
    MessageType type = ParquetSchemaUtil.convert(table.schema(), "table");
    descriptors = type.getColumns();
    bounds = new ColumnBounds[descriptors.size()];
    for (int at = 0; at < bounds.length; at++) {
      String property = TableProperties.PARQUET_COLUMN_STATS_ENABLED_PREFIX + table.schema().columns().get(at).name();
      boolean isKept = PropertyUtil.propertyAsBoolean(table.properties(), property, true);
      bounds[at] = new ColumnBounds(descriptors.get(at).getPrimitiveType(), isKept);
    }
    writer =
        new ParquetFileWriter(
            new ParquetTarget(target.encryptingOutputFile()), type, ParquetFileWriter.Mode.CREATE, settings.groupBytes, MOST_PADDING,
            LONGEST_BOUND, ParquetProperties.DEFAULT_STATISTICS_TRUNCATE_LENGTH, ParquetProperties.DEFAULT_PAGE_WRITE_CHECKSUM_ENABLED);
    writer.start();
    begin();
  }

  private void begin() {
    rows = 0;
    columns = new ColumnPages[bounds.length];
    for (int at = 0; at < columns.length; at++) {
      columns[at] = new ColumnPages(descriptors.get(at), settings, bounds[at]);
    }
  }

  /** The columns to which values are added, in the order of the table's. Each call of `added` may begin new ones. */
  ColumnPages[] columns() {
    return columns;
  }

  /** Says that each column got so many rows. */
  void added(int count) throws IOException {
    rows += count;
    if (sizeOfGroup() >= settings.groupBytes) {
      endGroup();
      begin();
    }
  }

  private long sizeOfGroup() {
    return Arrays.stream(columns).mapToLong(ColumnPages::size).sum();
  }

  private void endGroup() throws IOException {
    if (rows > 0) {
      writer.startBlock(rows);
      for (ColumnPages each : columns) {
        each.writeTo(writer);
      }
      writer.endBlock();
    }
  }

  long size() throws IOException {
    return writer.getPos() + sizeOfGroup();
  }

  DataFile end() throws IOException {
    endGroup();
    writer.end(Map.of("iceberg.schema", SchemaParser.toJson(table.schema())));
    ParquetMetadata footer = writer.getFooter();
    Stream<FieldMetrics<?>> metrics = Arrays.stream(bounds).<FieldMetrics<?>>map(ColumnBounds::metrics).filter(Objects::nonNull);
    return DataFiles.builder(table.spec())
        .withPath(location())
        .withPartition(partition)
        .withFormat(FileFormat.PARQUET)
        .withFileSizeInBytes(target.encryptingOutputFile().toInputFile().getLength())
        .withEncryptionKeyMetadata(target.keyMetadata())
        .withMetrics(ParquetUtil.footerMetrics(footer, metrics, MetricsConfig.forTable(table)))
        .withSortOrder(table.sortOrder())
        .withSplitOffsets(ParquetUtil.getSplitOffsets(footer))
        .build();
  }

  String location() {
    return target.encryptingOutputFile().location();
  }

  /** Deletes the file. What fails with that is not told: why the file is not wanted is what counts. */
  void abort() {
    try {
      writer.close();
    } catch (IOException | RuntimeException ignored) { // an open stream would write the file behind its deletion
    }
    delete(table.io(), location());
  }

  static void delete(FileIO io, String location) {
    try {
      io.deleteFile(location);
    } catch (RuntimeException ignored) { // maintenance deletes it
    }
  }
}
