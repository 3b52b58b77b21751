package sluice;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;

/** The entries of a map column, in their order. Of equal keys the last value counts, at the place of the first. */
final class MapBuilder {
  private static final int FEW = 8;

  private final List<Object> keys = new ArrayList<>();
  private final List<Object> values = new ArrayList<>();
  /** Only where there are many keys, so that a small map is compared and a large one takes no quadratic time. */
  private Map<Object, Integer> places;

  void put(Object key, Object value) {
    int place = place(key);
    if (place >= 0) {
      values.set(place, value);
      return;
    }
    if (places != null) {
      places.put(key, keys.size());
    }
    keys.add(key);
    values.add(value);
  }

  private int place(Object key) {
    if (keys.size() < FEW) {
      return keys.indexOf(key);
    }
    if (places == null) {
      places = new HashMap<>();
      for (int place = 0; place < keys.size(); place++) {
        places.put(keys.get(place), place);
      }
    }
    return places.getOrDefault(key, -1);
  }

  ArrayBasedMapData build() {
    return new ArrayBasedMapData(new GenericArrayData(keys.toArray()), new GenericArrayData(values.toArray()));
  }
}
