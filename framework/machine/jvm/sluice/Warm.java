package sluice;

import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.Reader;
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
import java.util.function.BooleanSupplier;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkExecutorInfo;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.kafka010.producer.InternalKafkaProducerPool$;
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
  private static final Duration LONGEST_END = Duration.ofSeconds(60); // of what a command began
  private static final Path ROOT = Path.of("/");
  private static final int LONGEST = 200; // characters of a question
  private static final int PATIENCE = 2_000; // milliseconds for it
  private static final Duration LONGEST_START = Duration.ofMinutes(2);
  private static volatile boolean started;
  private static SparkSession base;

  private final Path folder;
  private final Duration idle;
  private final String name;
  private final String secret = random();
  private Path leased; // null: free
  private boolean ending; // the command is gone, and what it began is not over yet
  private long since = System.nanoTime();

  private Warm(Path folder, Duration idle, String name) {
    this.folder = folder;
    this.idle = idle;
    this.name = name;
  }

  /** The arguments are the folder, the seconds to wait for a command, and the name by which the starting command knows this JVM. */
  public static void main(String[] arguments) {
    try {
      endUnlessStarted();
      Scratch.hold(Path.of(new SparkConf().get("spark.local.dir"), "jvm").toString());
      Ahead.start();
      base = FirstSession.of(SparkContext.getOrCreate());
      new Warm(Path.of(arguments[0]), Duration.ofSeconds(Long.parseLong(arguments[1])), arguments[2]).serve();
    } catch (Throwable error) {
      error.printStackTrace();
    }
    System.exit(1);
  }

  /** Commands would look for it, and go without it, for as long as it hangs. */
  private static void endUnlessStarted() {
    Thread watching =
        new Thread(
            () -> {
              try {
                Thread.sleep(LONGEST_START.toMillis());
              } catch (InterruptedException stopped) {
                return;
              }
              if (!started) {
                Runtime.getRuntime().halt(1);
              }
            },
            "sluice-warm-start");
    watching.setDaemon(true);
    watching.start();
  }

  /** Whether this JVM is one that several commands use. */
  static boolean serves() {
    return base != null;
  }

  /** A session for a command, whose settings and catalogs are its own. */
  public static SparkSession session() {
    SparkSession.clearActiveSession();
    return base.newSession();
  }

  private void serve() throws IOException, InterruptedException {
    try (ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
      Path file = written(server.getLocalPort());
      Thread watching = new Thread(() -> watch(file), "sluice-warm-watch");
      watching.setDaemon(true);
      watching.start();
      started = true;
      while (true) {
        accept(server);
      }
    }
  }

  private void accept(ServerSocket server) throws InterruptedException {
    try {
      Socket socket = server.accept();
      socket.setSoTimeout(PATIENCE);
      new Thread(() -> answer(socket), "sluice-warm").start();
    } catch (IOException error) { // such as too many open files, of the command that has the JVM
      System.err.println("no command can attach: " + error);
      Thread.sleep(LOOK.toMillis());
    }
  }

  /** Where commands find it: its port, secret and name. */
  private Path written(int port) throws IOException {
    var owner = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
    Path draft = Files.createTempFile(folder, "draft", "", owner);
    Files.writeString(draft, port + "\n" + secret + "\n" + name + "\n");
    return Files.move(draft, folder.resolve("address"), StandardCopyOption.ATOMIC_MOVE);
  }

  private void watch(Path file) {
    try {
      while (true) {
        Thread.sleep(LOOK.toMillis());
        endIfUseless(file);
      }
    } catch (Throwable error) { // it would never end by itself
      error.printStackTrace();
      System.exit(1);
    }
  }

  /** Asks for nothing while a command has the JVM, which may have opened all files that it can. */
  private synchronized void endIfUseless(Path file) throws IOException {
    if (leased == null && (!isOurs(file) || isLate() || Memory.isLow(ROOT) || isStopped())) {
      end();
    }
  }

  private boolean isOurs(Path file) throws IOException {
    return Files.exists(file) && Files.readString(file).contains(secret);
  }

  private boolean isLate() {
    return System.nanoTime() - since > idle.toNanos();
  }

  private static boolean isStopped() {
    return base.sparkContext().isStopped();
  }

  private void answer(Socket socket) {
    try (socket;
        Reader asked = new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8);
        PrintStream answers = new PrintStream(socket.getOutputStream(), true, StandardCharsets.UTF_8)) {
      String line = line(asked);
      if (!line.startsWith(secret + " ")) {
        return;
      }
      socket.setSoTimeout(0);
      Path lease = folder.resolve("lease-" + random());
      String refusal = refusal(lease);
      if (refusal != null) {
        answers.println(refusal);
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

  private static String line(Reader asked) throws IOException {
    StringBuilder line = new StringBuilder();
    for (int each = asked.read(); each != -1 && each != '\n' && line.length() < LONGEST; each = asked.read()) {
      line.append((char) each);
    }
    return line.toString();
  }

  /** Takes the lease; why not, where another has it. */
  private synchronized String refusal(Path lease) {
    if (leased != null) {
      return ending ? "ending" : "busy";
    }
    if (isStopped()) {
      end();
    }
    leased = lease;
    return null;
  }

  /** Serves a command until its connection is closed, and then until all that it began is over. */
  private void serve(Path lease, Reader asked, PrintStream answers) throws IOException {
    Set<StandardOpenOption> options = Set.of(StandardOpenOption.CREATE, StandardOpenOption.WRITE);
    try (FileChannel channel = FileChannel.open(lease, options)) {
      channel.lock();
      String token = random();
      ClientServer server =
          new ClientServer.ClientServerBuilder().authToken(token).javaPort(0).javaAddress(InetAddress.getLoopbackAddress()).build();
      server.startServer();
      try {
        answers.println(server.getJavaServer().getListeningPort() + " " + token + " " + lease);
        while (asked.read() != -1) {} // nothing more is said
      } finally {
        synchronized (this) {
          ending = true;
        }
        over(server);
        forget();
      }
    } finally {
      synchronized (this) {
        leased = null;
        ending = false;
        since = System.nanoTime();
      }
      Files.deleteIfExists(lease);
    }
  }

  /**
   * Cancels what the command began, until none of its calls, jobs and tasks runs, and Kafka has what they sent. Where that takes too long,
   * the JVM ends.
   */
  private static void over(ClientServer server) {
    long began = System.nanoTime();
    try {
      SparkContext context = base.sparkContext();
      context.cancelAllJobs();
      server.shutdown();
      until(
          began,
          () -> {
            boolean runs = runs(context);
            if (runs) {
              context.cancelAllJobs();
            }
            return !runs;
          });
      Thread closing = new Thread(Warm::closeProducers, "sluice-warm-producers");
      closing.setDaemon(true);
      closing.start();
      until(began, () -> !closing.isAlive());
    } catch (Throwable error) {
      error.printStackTrace();
      Runtime.getRuntime().halt(1); // its locks go with it
    }
  }

  private static void until(long began, BooleanSupplier over) throws InterruptedException {
    while (!over.getAsBoolean()) {
      if (System.nanoTime() - began > LONGEST_END.toNanos()) {
        throw new IllegalStateException("what a command began does not end");
      }
      Thread.sleep(20);
    }
  }

  /** Spark keeps the producers of its tasks, which would send on what a command gave them that is gone. */
  private static void closeProducers() {
    if (Thread.getAllStackTraces().keySet().stream().anyMatch(each -> each.getName().startsWith("kafka-producer-network-thread"))) {
      InternalKafkaProducerPool$.MODULE$.reset();
    }
  }

  private static boolean runs(SparkContext context) {
    if (context.isStopped()) {
      return false;
    }
    if (context.statusTracker().getActiveJobIds().length > 0 || context.statusTracker().getActiveStageIds().length > 0) {
      return true;
    }
    for (SparkExecutorInfo each : context.statusTracker().getExecutorInfos()) {
      if (each.numRunningTasks() > 0) {
        return true;
      }
    }
    return Thread.getAllStackTraces().values().stream().anyMatch(Warm::isCall);
  }

  private static boolean isCall(StackTraceElement[] frames) {
    for (StackTraceElement frame : frames) {
      if (frame.getClassName().equals("py4j.ClientServerConnection") && frame.getMethodName().equals("run")) {
        return true;
      }
    }
    return false;
  }

  /** Nothing of a command reaches the next; where something does not go, the JVM goes. */
  private static void forget() {
    try {
      SecretCatalog.forgetAll();
      Hashes.clear();
      StagedFiles.clear();
      Unpublished.clear();
      SparkSession.setDefaultSession(base);
      base.sharedState().cacheManager().clearCache();
      base.sharedState().globalTempViewManager().clear();
      ScalaList.toJava(base.sparkContext().getPersistentRDDs().values().toSeq()).forEach(each -> each.unpersist(false));
      if (isStopped()) {
        System.exit(1);
      }
    } catch (Throwable error) {
      error.printStackTrace();
      Runtime.getRuntime().halt(1);
    }
  }

  private void end() {
    try {
      Path file = folder.resolve("address");
      if (isOurs(file)) {
        Files.deleteIfExists(file);
      }
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
