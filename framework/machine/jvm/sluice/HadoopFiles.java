package sluice;

import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.util.SerializableSupplier;

/**
 * Iceberg's way to files by Hadoop, with Hadoop's own settings and those that somebody made, of which the latter alone go to the tasks.
 * Iceberg's class keeps what YARN and MapReduce would have, too, and sends over a thousand settings with each table that is read or
 * written.
 */
public final class HadoopFiles extends HadoopFileIO {
  @Override
  public void setConf(Configuration all) {
    Changed changed = new Changed(all);
    super.setConf(new Configuration(false)); // or the next line would make one with all
    super.serializeConfWith(empty -> changed);
  }

  /** Does nothing: `setConf` has set a supplier that can be sent. */
  @Override
  public void serializeConfWith(Function<Configuration, SerializableSupplier<Configuration>> ignored) {}

  private static final class Changed implements SerializableSupplier<Configuration> {
    private static final Configuration OWN = new Configuration(false);

    static {
      OWN.addResource("core-default.xml"); // of Hadoop's jar, so the same in all processes
    }

    private final HashMap<String, String> changed = new HashMap<>();
    private transient volatile Configuration all;

    Changed(Configuration all) {
      for (Map.Entry<String, String> each : all) {
        if (isChanged(all.getPropertySources(each.getKey()))) {
          changed.put(each.getKey(), each.getValue());
        }
      }
    }

    private static boolean isChanged(String[] sources) {
      return sources == null || sources.length == 0 || !sources[sources.length - 1].endsWith("-default.xml");
    }

    @Override
    public Configuration get() {
      if (all == null) {
        Configuration filled = new Configuration(OWN);
        changed.forEach(filled::set);
        all = filled;
      }
      return all;
    }
  }
}
