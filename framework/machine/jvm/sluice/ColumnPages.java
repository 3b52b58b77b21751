package sluice;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.iceberg.shaded.org.apache.parquet.bytes.BytesInput;
import org.apache.iceberg.shaded.org.apache.parquet.column.ColumnDescriptor;
import org.apache.iceberg.shaded.org.apache.parquet.column.Encoding;
import org.apache.iceberg.shaded.org.apache.parquet.column.page.DictionaryPage;
import org.apache.iceberg.shaded.org.apache.parquet.column.statistics.Statistics;
import org.apache.iceberg.shaded.org.apache.parquet.hadoop.ParquetFileWriter;
import org.apache.iceberg.shaded.org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;

/**
 * One column of a row group of Parquet: its values as pages of the format's first version, by numbers of a dictionary while that pays, then
 * plain, as Parquet's own writer does it.
 *
 * <p>That writer takes almost twice as long for the same pages: behind each value it asks whether the page, or the dictionary, is full, and
 * it compares each with the least and the greatest, which are found among the different ones here. Lists, maps and structs it does better.
 */
final class ColumnPages {
  private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final int FIRST_SIZE = 1 << 10;

  private final ColumnDescriptor column;
  private final FileSettings settings;
  private final ColumnBounds bounds;
  private final boolean isText;
  private final boolean isTruth;
  private final int width; // bytes of a number
  private final boolean isOptional;
  private final List<Page> pages = new ArrayList<>();
  private PageDictionary dictionary; // null once it is given up
  private byte[] dictionaryBytes;
  private int dictionaryCount; // entries that pages name

  // the page that is being filled
  private boolean[] nulls = new boolean[FIRST_SIZE];
  private int rows;
  private int nullCount;
  private int[] ids = new int[FIRST_SIZE];
  private byte[] plain = new byte[FIRST_SIZE];
  private int plainSize;
  private int count; // values
  private int size; // bytes of the values if they are plain
  private long sizeOfPages;
  private long rowsOfPages;

  private record Page(byte[] compressed, int size, int rows, Statistics<?> statistics, Encoding encoding) {}

  ColumnPages(ColumnDescriptor column, FileSettings settings, ColumnBounds bounds) {
    this.column = column;
    this.settings = settings;
    this.bounds = bounds;
    PrimitiveTypeName type = column.getPrimitiveType().getPrimitiveTypeName();
    isText = type == PrimitiveTypeName.BINARY;
    isTruth = type == PrimitiveTypeName.BOOLEAN;
    width = type == PrimitiveTypeName.INT32 || type == PrimitiveTypeName.FLOAT ? Integer.BYTES : Long.BYTES;
    isOptional = column.getMaxDefinitionLevel() > 0;
    dictionary = isTruth ? null : new PageDictionary(isText ? 0 : width);
  }

  /** Adds numbers, those of the first `wanted` of these rows: whole ones, the bits of real ones, or 1 for true. */
  void add(long[] numbers, boolean[] areNull, int[] rows, int wanted) {
    for (int from = 0; from < wanted; endFullPage()) {
      int end = from + Math.min(wanted - from, room());
      long[] present = new long[end - from];
      int found = 0;
      for (; from < end; from++) {
        boolean isNull = areNull[rows[from]];
        row(isNull);
        if (!isNull) {
          present[found++] = numbers[rows[from]];
        }
      }
      nullCount += present.length - found;
      add(present, found);
    }
  }

  /** How many numbers may come before somebody has to ask whether the page is full. */
  private int room() {
    return Math.max(1, Math.min(settings.pageRows - rows, (settings.pageBytes - size + width - 1) / width));
  }

  private void add(long[] numbers, int added) {
    size += width * added;
    bounds.countNans(numbers, added);
    if (dictionary == null) {
      bounds.add(numbers, added);
      for (int at = 0; at < added; at++) {
        plain(numbers[at]);
      }
      count += added;
    } else {
      makeRoomForIds(added);
      dictionary.idsOf(numbers, added, ids, count);
      for (int at = count; at < count + added; at++) {
        if (dictionary.isNewIn(page(), ids[at])) {
          bounds.add(dictionary.number(ids[at]));
        }
      }
      count += added;
      giveUpIfLarge();
    }
  }

  /** Adds texts, or other bytes, those of the first `wanted` of these rows. They are copied. */
  void add(byte[][] bytes, int[] starts, int[] lengths, int[] rows, int wanted) {
    for (int at = 0; at < wanted; at++) {
      int row = rows[at];
      row(bytes[row] == null);
      if (bytes[row] == null) {
        nullCount++;
      } else {
        add(bytes[row], starts[row], lengths[row]);
      }
      endFullPage();
    }
  }

  private void add(byte[] bytes, int from, int length) {
    size += Integer.BYTES + length;
    if (dictionary == null) {
      bounds.add(bytes, from, length);
      plain(bytes, from, length);
      count++;
      return;
    }
    int id = dictionary.idOf(bytes, from, length);
    if (dictionary.isNewIn(page(), id)) {
      bounds.add(bytes, from, length);
    }
    makeRoomForIds(1);
    ids[count++] = id;
    giveUpIfLarge();
  }

  private int page() {
    return pages.size() + 1;
  }

  private void row(boolean isNull) {
    if (rows == nulls.length) {
      nulls = Arrays.copyOf(nulls, 2 * rows);
    }
    nulls[rows++] = isNull;
  }

  private void makeRoomForIds(int more) {
    if (more > ids.length - count) {
      ids = Arrays.copyOf(ids, Math.max(2 * count, count + more));
    }
  }

  private void giveUpIfLarge() {
    if (dictionary.size() > settings.dictionaryBytes) {
      giveUp();
    }
  }

  private void plain(long number) {
    makeRoom(Long.BYTES);
    if (isTruth) {
      plain[plainSize++] = (byte) number;
    } else if (width == Integer.BYTES) {
      INTS.set(plain, plainSize, (int) number);
      plainSize += width;
    } else {
      LONGS.set(plain, plainSize, number);
      plainSize += width;
    }
  }

  private void plain(byte[] bytes, int from, int length) {
    makeRoom(Integer.BYTES + length);
    INTS.set(plain, plainSize, length);
    System.arraycopy(bytes, from, plain, plainSize + Integer.BYTES, length);
    plainSize += Integer.BYTES + length;
  }

  private void makeRoom(int more) {
    if (more > plain.length - plainSize) {
      plain = Arrays.copyOf(plain, Math.max(2 * plain.length, plainSize + more));
    }
  }

  /** Writes the values of this page, and all later ones, plain. Earlier pages keep their numbers. */
  private void giveUp() {
    PageDictionary given = dictionary;
    for (int at = 0; at < count; at++) {
      if (isText) {
        plain(given.texts(), given.start(ids[at]), given.length(ids[at]));
      } else {
        plain(given.number(ids[at]));
      }
    }
    dictionaryBytes = given.bytes(dictionaryCount);
    dictionary = null;
  }

  private void endFullPage() {
    if (rows >= settings.pageRows || size >= settings.pageBytes) {
      endPage();
    }
  }

  private void endPage() {
    if (rows == 0) {
      return;
    }
    byte[] packed = dictionary == null ? null : BitPacking.of(ids, count, bits());
    if (packed != null && pages.isEmpty() && packed.length + dictionary.size() >= size) { // as Parquet's own writer judges
      giveUp();
      packed = null;
    }
    byte[] body = body(packed);
    byte[] compressed = settings.compressed(body);
    Encoding encoding = packed == null ? Encoding.PLAIN : Encoding.PLAIN_DICTIONARY;
    pages.add(new Page(compressed, body.length, rows, bounds.endPage(count, nullCount), encoding));
    dictionaryCount = dictionary == null ? dictionaryCount : dictionary.count();
    sizeOfPages += compressed.length;
    rowsOfPages += rows;
    rows = 0;
    nullCount = 0;
    count = 0;
    size = 0;
    plainSize = 0;
  }

  private byte[] body(byte[] packed) {
    byte[] levels = levels();
    byte[] values = packed != null ? packed : isTruth ? BitPacking.bits(plain, count) : plain;
    int size = packed != null || isTruth ? values.length : plainSize;
    byte[] body = Arrays.copyOf(levels, levels.length + (packed != null ? 1 : 0) + size);
    if (packed != null) {
      body[levels.length] = (byte) bits();
    }
    System.arraycopy(values, 0, body, body.length - size, size);
    return body;
  }

  private int bits() {
    return Integer.SIZE - Integer.numberOfLeadingZeros(dictionary.count() - 1);
  }

  /** Which rows have a value, behind the length of that. */
  private byte[] levels() {
    if (!isOptional) {
      return new byte[0];
    }
    byte[] packed = nullCount == 0 ? BitPacking.run(rows, 1, 1) : BitPacking.of(nulls, rows, false);
    byte[] levels = new byte[Integer.BYTES + packed.length];
    INTS.set(levels, 0, packed.length);
    System.arraycopy(packed, 0, levels, Integer.BYTES, packed.length);
    return levels;
  }

  /** The bytes that the pages take, those of the last one before it is compressed. */
  long size() {
    return sizeOfPages + (dictionary == null ? plainSize : (long) Integer.BYTES * count + dictionary.size());
  }

  void writeTo(ParquetFileWriter file) throws IOException {
    endPage();
    file.startColumn(column, rowsOfPages, settings.codec);
    if (dictionaryCount > 0) {
      byte[] bytes = dictionary == null ? dictionaryBytes : dictionary.bytes(dictionaryCount);
      BytesInput compressed = BytesInput.from(settings.compressed(bytes));
      file.writeDictionaryPage(new DictionaryPage(compressed, bytes.length, dictionaryCount, Encoding.PLAIN_DICTIONARY));
    }
    for (Page page : pages) {
      BytesInput bytes = BytesInput.from(page.compressed);
      file.writeDataPage(page.rows, page.size, bytes, page.statistics, page.rows, Encoding.RLE, Encoding.RLE, page.encoding);
    }
    file.endColumn();
  }
}
