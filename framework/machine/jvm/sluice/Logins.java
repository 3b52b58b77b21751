package sluice;

import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;

/** What Kafka's clients need of this process to log in. */
final class Logins {
  private static final String ENDPOINT = "sasl.oauthbearer.token.endpoint.url";
  private static final String ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls";

  private Logins() {}

  /** Allows Kafka's clients to ask the endpoint of tokens that these settings name: they ask none that the process does not allow. */
  static synchronized void allow(Map<String, ?> settings) {
    if (settings.get(ENDPOINT) instanceof String endpoint) {
      Set<String> allowed = new LinkedHashSet<>(Arrays.asList(System.getProperty(ALLOWED, endpoint).split(",")));
      allowed.add(endpoint);
      System.setProperty(ALLOWED, String.join(",", allowed));
    }
  }
}
