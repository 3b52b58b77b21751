package org.apache.iceberg.rest;

import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.EnumSet;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.catalog.Catalog;
import org.eclipse.jetty.ee10.servlet.FilterHolder;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/**
 * Iceberg's own REST catalog, as its tests have it, on this machine's loopback address and behind OAuth2: one client, whose tokens end.
 * Its argument is a file of properties: `port`, `path`, `client_id`, `client_secret`, `token_seconds`, and `catalog.…` for the catalog
 * behind it.
 */
public final class CatalogServer {
  private CatalogServer() {}

  public static void main(String[] arguments) throws Exception {
    Properties settings = new Properties();
    try (Reader file = Files.newBufferedReader(Path.of(arguments[0]))) {
      settings.load(file);
    }
    Map<String, String> behind =
        settings.stringPropertyNames().stream()
            .filter(name -> name.startsWith("catalog."))
            .collect(Collectors.toMap(name -> name.substring("catalog.".length()), settings::getProperty));
    Catalog catalog = CatalogUtil.buildIcebergCatalog("behind_rest", behind, null);
    var adapter = new RESTServerCatalogAdapter(new RESTCatalogServer.CatalogContext(catalog, behind));
    var context = new ServletContextHandler(settings.getProperty("path"), ServletContextHandler.NO_SESSIONS);
    context.addServlet(new ServletHolder(new RESTCatalogServlet(adapter)), "/*");
    context.addFilter(new FilterHolder(new Login(settings)), "/*", EnumSet.of(DispatcherType.REQUEST));
    Server server = new Server();
    ServerConnector connector = new ServerConnector(server);
    connector.setHost("127.0.0.1");
    connector.setPort(Integer.parseInt(settings.getProperty("port")));
    server.addConnector(connector);
    server.setHandler(context);
    server.start();
    server.join();
  }

  /** A request without the context path: Iceberg's servlet takes the whole path for its own. */
  private static final class WithoutPath extends HttpServletRequestWrapper {
    WithoutPath(HttpServletRequest request) {
      super(request);
    }

    @Override
    public String getRequestURI() {
      return super.getRequestURI().substring(getContextPath().length());
    }
  }

  /** Gives tokens to the one client that it knows, and lets nobody by without one. */
  private static final class Login implements Filter {
    private final Map<String, Long> tokens = new ConcurrentHashMap<>(); // until when
    private final String client;
    private final String secret;
    private final long seconds;

    Login(Properties settings) {
      client = settings.getProperty("client_id");
      secret = settings.getProperty("client_secret");
      seconds = Long.parseLong(settings.getProperty("token_seconds"));
    }

    @Override
    public void doFilter(ServletRequest asked, ServletResponse answer, FilterChain next) throws IOException, ServletException {
      var request = (HttpServletRequest) asked;
      var response = (HttpServletResponse) answer;
      if (request.getRequestURI().endsWith("/v1/oauth/tokens")) {
        give(request, response);
        return;
      }
      String header = request.getHeader("Authorization");
      Long until = header != null && header.startsWith("Bearer ") ? tokens.get(header.substring("Bearer ".length())) : null;
      if (until == null || until < System.currentTimeMillis()) {
        write(
            response,
            401,
            "{\"error\":{\"message\":\"the token is missing, unknown or has ended\",\"type\":\"NotAuthorizedException\",\"code\":401}}");
        return;
      }
      next.doFilter(new WithoutPath(request), answer);
    }

    private void give(HttpServletRequest request, HttpServletResponse response) throws IOException {
      String id = request.getParameter("client_id");
      String password = request.getParameter("client_secret");
      String basic = request.getHeader("Authorization");
      if (id == null && basic != null && basic.startsWith("Basic ")) {
        byte[] both = Base64.getDecoder().decode(basic.substring("Basic ".length()));
        String[] parts = new String(both, StandardCharsets.UTF_8).split(":", 2);
        id = parts[0];
        password = parts[parts.length - 1];
      }
      if (!"client_credentials".equals(request.getParameter("grant_type"))) {
        write(response, 400, "{\"error\":\"unsupported_grant_type\",\"error_description\":\"only client_credentials\"}");
      } else if (!client.equals(id) || !secret.equals(password)) {
        write(response, 401, "{\"error\":\"invalid_client\",\"error_description\":\"no such client, or another secret\"}");
      } else {
        String token = UUID.randomUUID().toString();
        tokens.put(token, System.currentTimeMillis() + seconds * 1000);
        write(response, 200, "{\"access_token\":\"" + token + "\",\"token_type\":\"bearer\",\"expires_in\":" + seconds + "}");
      }
    }

    private static void write(HttpServletResponse response, int status, String text) throws IOException {
      response.setStatus(status);
      response.setContentType("application/json");
      response.getWriter().write(text);
    }
  }
}
