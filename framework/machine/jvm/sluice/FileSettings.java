package sluice;

import com.github.luben.zstd.ZstdCompressCtx;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Locale;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.shaded.org.apache.parquet.bytes.BytesInput;
import org.apache.iceberg.shaded.org.apache.parquet.hadoop.CodecFactory;
import org.apache.iceberg.shaded.org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.iceberg.util.PropertyUtil;

/** What a table's properties say about its files of Parquet, as Iceberg's own writer reads them. */
final class FileSettings {
  private static final int ZSTD_LEVEL = 3; // of Parquet, where the table says nothing

  final int pageRows;
  final int pageBytes;
  final int dictionaryBytes;
  final int groupBytes;
  final CompressionCodecName codec;
  private final CodecFactory codecs;
  private final ZstdCompressCtx zstd; // null: another codec

  FileSettings(Map<String, String> properties) {
    pageRows = PropertyUtil.propertyAsInt(properties, TableProperties.PARQUET_PAGE_ROW_LIMIT, TableProperties.PARQUET_PAGE_ROW_LIMIT_DEFAULT);
    pageBytes = PropertyUtil.propertyAsInt(properties, TableProperties.PARQUET_PAGE_SIZE_BYTES, TableProperties.PARQUET_PAGE_SIZE_BYTES_DEFAULT);
    dictionaryBytes = PropertyUtil.propertyAsInt(properties, TableProperties.PARQUET_DICT_SIZE_BYTES, TableProperties.PARQUET_DICT_SIZE_BYTES_DEFAULT);
    groupBytes =
        PropertyUtil.propertyAsInt(
            properties, TableProperties.PARQUET_ROW_GROUP_SIZE_BYTES, TableProperties.PARQUET_ROW_GROUP_SIZE_BYTES_DEFAULT);
    String name = properties.getOrDefault(TableProperties.PARQUET_COMPRESSION, TableProperties.PARQUET_COMPRESSION_DEFAULT);
    codec = CompressionCodecName.valueOf(name.toUpperCase(Locale.ROOT));
    String level = properties.get(TableProperties.PARQUET_COMPRESSION_LEVEL);
    codecs = new CodecFactory(levels(level), pageBytes);
    // Parquet's own way through Hadoop does not tell zstd how long a page is, which makes numbers a tenth larger.
    zstd = codec == CompressionCodecName.ZSTD ? new ZstdCompressCtx().setLevel(level == null ? ZSTD_LEVEL : Integer.parseInt(level)) : null;
  }

  static boolean areOfParquet(Table table) {
    String format = table.properties().getOrDefault(TableProperties.DEFAULT_FILE_FORMAT, TableProperties.DEFAULT_FILE_FORMAT_DEFAULT);
    return FileFormat.fromString(format) == FileFormat.PARQUET;
  }

  private static Configuration levels(String level) {
    Configuration levels = new Configuration(false);
    if (level != null) {
      levels.set("zlib.compress.level", level);
      levels.set("compression.brotli.quality", level);
    }
    return levels;
  }

  byte[] compressed(byte[] bytes) {
    if (zstd != null) {
      return zstd.compress(bytes);
    }
    try {
      return codecs.getCompressor(codec).compress(BytesInput.from(bytes)).toByteArray();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  void release() {
    codecs.release();
    if (zstd != null) {
      zstd.close();
    }
  }
}
