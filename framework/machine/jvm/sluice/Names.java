package sluice;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** The names of a struct's fields as bytes, to be found without making a string of each name in a message. */
final class Names {
  private final byte[][] names;
  private final byte[][] quoted;
  /** Places in `names` plus 1, by hash; 0 is free. */
  private final int[] table;

  Names(Field[] fields) {
    names = new byte[fields.length][];
    quoted = new byte[fields.length][];
    table = new int[Integer.highestOneBit(Math.max(fields.length, 1)) * 4];
    for (int place = 0; place < fields.length; place++) {
      names[place] = fields[place].source.getBytes(StandardCharsets.UTF_8);
      quoted[place] = quoted(fields[place].source);
      int slot = slot(names[place], 0, names[place].length);
      while (table[slot] != 0) {
        slot = slot + 1 & table.length - 1;
      }
      table[slot] = place + 1;
    }
  }

  /** The name as JSON has it; null where JSON would escape a part of it. */
  private static byte[] quoted(String name) {
    boolean isPlain = name.chars().allMatch(c -> c >= ' ' && c != '"' && c != '\\');
    return isPlain ? ('"' + name + '"').getBytes(StandardCharsets.UTF_8) : null;
  }

  /** Whether the name of this field was next in a JSON object, and is passed now: most producers keep an order. */
  boolean passed(int place, JsonText in) {
    return place < quoted.length && quoted[place] != null && in.passes(quoted[place]);
  }

  /** The place of the field with this name, or -1. */
  int place(byte[] text, int from, int to) {
    for (int slot = slot(text, from, to); table[slot] != 0; slot = slot + 1 & table.length - 1) {
      if (equal(table[slot] - 1, text, from, to)) {
        return table[slot] - 1;
      }
    }
    return -1;
  }

  private boolean equal(int place, byte[] text, int from, int to) {
    byte[] name = names[place];
    return name.length == to - from && Arrays.equals(name, 0, name.length, text, from, to);
  }

  private int slot(byte[] text, int from, int to) {
    int hash = to - from;
    for (int i = from; i < to; i++) {
      hash = hash * 31 + text[i];
    }
    return (hash ^ hash >>> 15) & table.length - 1;
  }
}
