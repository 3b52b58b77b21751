package sluice;

import java.io.IOException;
import java.net.URL;
import java.util.Collections;
import java.util.Enumeration;
import java.util.HashMap;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.classic.SparkSession;

/**
 * The first session of a JVM, as Spark makes it but for what its library for machine learning adds. Four functions that no spec can call
 * ask for their types by reflection, which takes a tenth of a run of few rows.
 */
public final class FirstSession {
  private static final String PROVIDERS = "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider";
  private static final String MACHINE_LEARNING = "/spark-mllib_";

  private FirstSession() {}

  public static SparkSession of(SparkContext context) {
    Ahead.waitForSessions();
    Thread thread = Thread.currentThread();
    ClassLoader before = thread.getContextClassLoader();
    thread.setContextClassLoader(new Others(before));
    try {
      SparkSession session = new SparkSession(context, new HashMap<>());
      SparkSession.setDefaultSession(session);
      SparkSession.setActiveSession(session);
      return session;
    } finally {
      thread.setContextClassLoader(before);
    }
  }

  /** All that its parent has, without that library's entry in the list of those who add to a session. */
  private static final class Others extends ClassLoader {
    Others(ClassLoader parent) {
      super(parent);
    }

    @Override
    public Enumeration<URL> getResources(String name) throws IOException {
      Enumeration<URL> all = super.getResources(name);
      return name.equals(PROVIDERS) ? without(all) : all;
    }

    private static Enumeration<URL> without(Enumeration<URL> all) {
      return Collections.enumeration(Collections.list(all).stream().filter(each -> !each.getPath().contains(MACHINE_LEARNING)).toList());
    }
  }
}
