package sluice;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.unsafe.Platform;

/** The different values of a part of a column, by the numbers under which the pages name them. No object is made of a value. */
final class PageDictionary {
  private static final int FIRST_SIZE = 1 << 8;
  private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final long SPREAD = 0x9E3779B97F4A7C15L;

  private final int width; // bytes of a number; 0 for texts
  private long[] entries = new long[FIRST_SIZE]; // numbers, short texts, or hashes of longer ones
  private int[] lastPages = new int[FIRST_SIZE]; // the page in which each entry was last
  private byte[] texts = new byte[FIRST_SIZE];
  private int[] ends = new int[FIRST_SIZE + 1]; // of texts
  private int[] slots = new int[4 * FIRST_SIZE]; // numbers of entries plus 1, by hash; 0 is free
  private int count;
  private int size;

  PageDictionary(int width) {
    this.width = width;
  }

  int count() {
    return count;
  }

  /** The bytes that the dictionary takes in the file, before they are compressed. */
  int size() {
    return size;
  }

  private int idOf(long number) {
    int mask = slots.length - 1;
    int slot = slot(number, mask);
    for (int found; (found = slots[slot]) != 0; slot = slot + 1 & mask) {
      if (entries[found - 1] == number) {
        return found - 1;
      }
    }
    size += width;
    return enter(number, slot);
  }

  /** Puts the numbers of the entries of so many values behind one another, from a place on. */
  void idsOf(long[] numbers, int count, int[] ids, int place) {
    for (int at = 0; at < count; at++) {
      ids[place + at] = idOf(numbers[at]);
    }
  }

  int idOf(byte[] bytes, int from, int length) {
    long entry = length <= Long.BYTES ? whole(bytes, from, length) : XXH64.hashUnsafeBytes(bytes, Platform.BYTE_ARRAY_OFFSET + (long) from, length, 0);
    int mask = slots.length - 1;
    int slot = slot(entry, mask);
    for (int found; (found = slots[slot]) != 0; slot = slot + 1 & mask) {
      if (entries[found - 1] == entry && length(found - 1) == length && (length <= Long.BYTES || isText(found - 1, bytes, from))) {
        return found - 1;
      }
    }
    int start = ends[count];
    if (length > texts.length - start) {
      texts = Arrays.copyOf(texts, Math.max(2 * texts.length, start + length));
    }
    System.arraycopy(bytes, from, texts, start, length);
    ends[count + 1] = start + length;
    size += Integer.BYTES + length;
    return enter(entry, slot);
  }

  /** All bytes of a short text, behind noughts. */
  private static long whole(byte[] bytes, int from, int length) {
    if (length == 0) {
      return 0;
    }
    long whole = 0;
    if (from + Long.BYTES <= bytes.length) {
      whole = (long) LONGS.get(bytes, from);
    } else {
      for (int at = from + length - 1; at >= from; at--) {
        whole = whole << Byte.SIZE | bytes[at] & 0xFF;
      }
    }
    return whole << Long.SIZE - Byte.SIZE * length;
  }

  private boolean isText(int id, byte[] bytes, int from) {
    return Arrays.equals(texts, ends[id], ends[id + 1], bytes, from, from + length(id));
  }

  private int enter(long entry, int slot) {
    int id = count++;
    entries[id] = entry;
    slots[slot] = count;
    if (count == entries.length) {
      entries = Arrays.copyOf(entries, 2 * count);
      lastPages = Arrays.copyOf(lastPages, 2 * count);
      ends = Arrays.copyOf(ends, 2 * count + 1);
      slots = slotsOf(8 * count);
    }
    return id;
  }

  private int[] slotsOf(int length) {
    int[] larger = new int[length];
    int mask = length - 1;
    for (int id = 0; id < count; id++) {
      int slot = slot(entries[id], mask);
      while (larger[slot] != 0) {
        slot = slot + 1 & mask;
      }
      larger[slot] = id + 1;
    }
    return larger;
  }

  /** By the highest bits of the product, which depend on all bits of the entry: whole numbers as doubles differ only in their own highest. */
  private static int slot(long entry, int mask) {
    return (int) (entry * SPREAD >>> Long.numberOfLeadingZeros(mask));
  }

  /** Whether an entry has not been in this page before. Pages count from 1. */
  boolean isNewIn(int page, int id) {
    boolean isNew = lastPages[id] != page;
    lastPages[id] = page;
    return isNew;
  }

  long number(int id) {
    return entries[id];
  }

  byte[] texts() {
    return texts;
  }

  int start(int id) {
    return ends[id];
  }

  int length(int id) {
    return ends[id + 1] - ends[id];
  }

  /** The first entries as they stand in the file. */
  byte[] bytes(int first) {
    ByteBuffer bytes = ByteBuffer.allocate(width == 0 ? ends[first] + Integer.BYTES * first : width * first).order(ByteOrder.LITTLE_ENDIAN);
    for (int id = 0; id < first; id++) {
      if (width == 0) {
        bytes.putInt(length(id)).put(texts, start(id), length(id));
      } else if (width == Integer.BYTES) {
        bytes.putInt((int) entries[id]);
      } else {
        bytes.putLong(entries[id]);
      }
    }
    return bytes.array();
  }
}
