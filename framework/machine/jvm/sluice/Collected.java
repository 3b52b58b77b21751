package sluice;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** Collects what Iceberg would delete, so that its caller decides. */
public final class Collected implements Consumer<String> {
  private final List<String> locations = new ArrayList<>();

  @Override
  public synchronized void accept(String location) {
    locations.add(location);
  }

  /** All of them, a line each: Py4J takes as long for each item of a list as for this text. */
  public synchronized String lines() {
    return String.join("\n", locations);
  }
}
