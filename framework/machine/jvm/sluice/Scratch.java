package sluice;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** The scratch folder of this JVM, which nobody deletes while the JVM lives. */
public final class Scratch {
  private static FileChannel held; // never closed: its lock ends with the JVM

  private Scratch() {}

  /** Locks the file, as `attempts.works` asks. */
  public static synchronized void hold(String file) throws IOException {
    if (held == null) {
      held = FileChannel.open(Path.of(file), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
      held.lock();
    }
  }
}
