package sluice;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** How much memory the machine has left, or the container in which this JVM runs. */
public final class Memory {
  private static final int LEAST = 10; // percent
  private static final int KIB = 1024;

  private Memory() {}

  /** Whether little is left, where that can be read; `root` is the folder that has `proc` and `sys`. */
  public static boolean isLow(Path root) {
    try {
      return hasLittle(root);
    } catch (IOException | RuntimeException unreadable) {
      return false;
    }
  }

  private static boolean hasLittle(Path root) throws IOException {
    Path machine = root.resolve("proc/meminfo");
    long total = value(machine, "MemTotal:", 0) * KIB;
    long free = value(machine, "MemAvailable:", 0) * KIB;
    Path container = root.resolve("sys/fs/cgroup");
    long most = number(container.resolve("memory.max"), Long.MAX_VALUE);
    if (most < total) {
      // The kernel keeps files that were read or written once for as long as nobody needs the memory.
      long cached = value(container.resolve("memory.stat"), "inactive_file", 0);
      long used = number(container.resolve("memory.current"), 0) - cached;
      free = Math.min(free, most - used);
      total = most;
    }
    return free * 100 < total * LEAST;
  }

  private static long value(Path file, String name, long otherwise) throws IOException {
    for (String line : lines(file)) {
      String[] words = line.split("\\s+");
      if (words[0].equals(name)) {
        return Long.parseLong(words[1]);
      }
    }
    return otherwise;
  }

  private static long number(Path file, long otherwise) throws IOException {
    List<String> lines = lines(file);
    return lines.isEmpty() || lines.get(0).equals("max") ? otherwise : Long.parseLong(lines.get(0).strip());
  }

  private static List<String> lines(Path file) throws IOException {
    return Files.exists(file) ? Files.readAllLines(file) : List.of();
  }
}
