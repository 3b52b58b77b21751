package sluice;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;

/** Where a field is: the names of the fields around it and its own. Lists and maps on the way have none. */
final class Paths {
  private Paths() {}

  static List<String> of(JsonNode names) {
    List<String> path = new ArrayList<>();
    names.forEach(name -> path.add(name.asText()));
    return path;
  }

  static List<String> with(List<String> path, String name) {
    List<String> longer = new ArrayList<>(path);
    longer.add(name);
    return longer;
  }
}
