package sluice;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/**
 * The program behind `sluice reveal`. The lines of its input are the column, the number of keys, an id and a secret for each, then values.
 * Its output has a line for each value: `=` and the value in base64, or `!` where it cannot be revealed. Neither the keys nor the values are in its arguments.
 */
public final class Reveal {
  private Reveal() {}

  public static void main(String[] arguments) throws IOException {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    byte[] column = in.readLine().getBytes(StandardCharsets.UTF_8);
    int count = Integer.parseInt(in.readLine());
    List<String> ids = new ArrayList<>();
    List<byte[]> secrets = new ArrayList<>();
    for (int at = 0; at < count; at++) {
      ids.add(in.readLine());
      secrets.add(in.readLine().getBytes(StandardCharsets.UTF_8));
    }
    KeyRing ring = new KeyRing(ids.toArray(String[]::new), secrets.toArray(byte[][]::new), 0);
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String value = ring.reveal(column, line);
      out.println(value == null ? "!" : "=" + Base64.getEncoder().encodeToString(value.getBytes(StandardCharsets.UTF_8)));
    }
    out.flush();
  }
}
