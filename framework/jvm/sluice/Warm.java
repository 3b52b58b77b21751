package sluice;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.HexFormat;
import java.util.Set;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import py4j.ClientServer;

/**
 * A JVM with a Spark that serves one command after another and ends by itself when none has come for a while, when the machine has
 * little memory left, or when its file is gone.
 *
 * <p>A command has a lease: as long as its connection is open. It gets a server of Py4J of its own, whose objects go with the lease. The
 * lease's file is locked until all that the command began in this JVM is over, however the command ended: who asks whether an attempt
 * lives asks for this lock.
 */
public final class Warm {
  private static final Duration LOOK = Duration.ofSeconds(2);
  private static final int LEAST_MEMORY = 10; // percent of the machine's
  private static SparkSession base;

  private final Path folder;
  private final Duration idle;
  private final String secret = random();
  private Path leased; // null: free
  private boolean ending; // the command is gone, and what it began is not over yet
  private long since = System.nanoTime();
  private int leases;

  private Warm(Path folder, Duration idle) {
    this.folder = folder;
    this.idle = idle;
  }

  /** Its folder, and the seconds that it waits for a command. */
  public static void main(String[] arguments) throws IOException {
    base = SparkSession.builder().getOrCreate();
    new Warm(Path.of(arguments[0]), Duration.ofSeconds(Long.parseLong(arguments[1]))).serve();
  }

  /** A session for a command, whose settings and catalogs are its own. */
  public static SparkSession session() {
    SparkSession.clearActiveSession();
    return base.newSession();
  }

  private void serve() throws IOException {
    try (ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
      Path file = written(server.getLocalPort());
      Thread watching = new Thread(() -> watch(file), "sluice-warm-watch");
      watching.setDaemon(true);
      watching.start();
      while (true) {
        Socket socket = server.accept();
        new Thread(() -> answer(socket), "sluice-warm").start();
      }
    }
  }

  /** Where commands find it: its port and secret. */
  private Path written(int port) throws IOException {
    var owner = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
    Path draft = Files.createTempFile(folder, "draft", "", owner);
    Files.writeString(draft, port + "\n" + secret + "\n");
    return Files.move(draft, folder.resolve("address"), StandardCopyOption.ATOMIC_MOVE);
  }

  private void watch(Path file) {
    while (true) {
      try {
        Thread.sleep(LOOK.toMillis());
        boolean ours = Files.exists(file) && Files.readString(file).contains(secret);
        synchronized (this) {
          boolean late = System.nanoTime() - since > idle.toNanos() || littleMemory();
          if (leased == null && (late || !ours)) {
            end();
          }
        }
      } catch (IOException | InterruptedException error) {
        System.err.println("the warm JVM does not see whether it is needed: " + error);
      }
    }
  }

  private static boolean littleMemory() throws IOException {
    Path file = Path.of("/proc/meminfo");
    if (!Files.exists(file)) {
      return false;
    }
    long total = 0;
    for (String line : Files.readAllLines(file)) {
      String[] words = line.split("\\s+");
      if (words[0].equals("MemTotal:")) {
        total = Long.parseLong(words[1]);
      } else if (words[0].equals("MemAvailable:")) {
        return Long.parseLong(words[1]) * 100 < total * LEAST_MEMORY;
      }
    }
    return false;
  }

  private void answer(Socket socket) {
    try (socket;
        BufferedReader asked = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
        PrintStream answers = new PrintStream(socket.getOutputStream(), true, StandardCharsets.UTF_8)) {
      String line = asked.readLine();
      if (line == null || !line.startsWith(secret + " ")) {
        return;
      }
      Path lease = taken();
      if (lease == null) {
        answers.println(ending ? "ending" : "busy");
      } else if (line.endsWith(" end")) {
        answers.println("ended");
        end();
      } else {
        serve(lease, asked, answers);
      }
    } catch (IOException error) {
      System.err.println("a command's connection: " + error);
    }
  }

  private synchronized Path taken() {
    if (leased != null) {
      return null;
    }
    leases++;
    leased = folder.resolve("lease-" + ProcessHandle.current().pid() + "-" + leases);
    return leased;
  }

  /** Serves a command until its connection is closed, and then until all that it began is over. */
  private void serve(Path lease, BufferedReader asked, PrintStream answers) throws IOException {
    Set<StandardOpenOption> options = Set.of(StandardOpenOption.CREATE, StandardOpenOption.WRITE);
    try (FileChannel channel = FileChannel.open(lease, options)) {
      channel.lock();
      String token = random();
      ClientServer server =
          new ClientServer.ClientServerBuilder().authToken(token).javaPort(0).javaAddress(InetAddress.getLoopbackAddress()).build();
      server.startServer();
      try {
        answers.println(server.getJavaServer().getListeningPort() + " " + token + " " + lease);
        while (asked.readLine() != null) {} // nothing more is said
      } finally {
        ending = true;
        server.shutdown();
        over();
        forget();
      }
    } finally {
      Files.deleteIfExists(lease);
      synchronized (this) {
        leased = null;
        ending = false;
        since = System.nanoTime();
      }
    }
  }

  /** Cancels what the command began, until none of its calls runs. */
  private static void over() {
    while (Thread.getAllStackTraces().values().stream().anyMatch(Warm::isCall)) {
      SparkContext.getOrCreate().cancelAllJobs();
      try {
        Thread.sleep(50);
      } catch (InterruptedException error) {
        Thread.currentThread().interrupt();
        return;
      }
    }
  }

  private static boolean isCall(StackTraceElement[] frames) {
    for (StackTraceElement frame : frames) {
      if (frame.getClassName().equals("py4j.ClientServerConnection") && frame.getMethodName().equals("run")) {
        return true;
      }
    }
    return false;
  }

  /** Nothing of a command reaches the next. */
  private static void forget() {
    Keys.clear();
    Hashes.clear();
    SecretCatalog.clear();
    SparkSession.setDefaultSession(base);
    base.sharedState().cacheManager().clearCache();
    base.sharedState().globalTempViewManager().clear();
    SparkContext context = base.sparkContext();
    ScalaList.toJava(context.getPersistentRDDs().values().toSeq()).forEach(each -> each.unpersist(false));
  }

  private void end() {
    try {
      Files.deleteIfExists(folder.resolve("address"));
    } catch (IOException error) {
      System.err.println("the warm JVM's file stays: " + error);
    }
    System.exit(0);
  }

  private static String random() {
    byte[] bytes = new byte[24];
    new SecureRandom().nextBytes(bytes);
    return HexFormat.of().formatHex(bytes);
  }
}
