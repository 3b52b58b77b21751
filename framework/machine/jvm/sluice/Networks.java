package sluice;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.regex.Pattern;

/** The network of an address: 203.0.113.77 with 24 bits is 203.0.113.0/24. An IPv6 address keeps twice as many bits. */
final class Networks {
  static final String NO_ADDRESS = "***";
  private static final String BYTE = "(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])";
  private static final Pattern V4 = Pattern.compile(BYTE + "(\\." + BYTE + "){3}");
  private static final Pattern V6 = Pattern.compile("[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*");

  private Networks() {}

  static String of(String text, int bits) {
    String address = text.strip();
    // Anything else would be looked up as the name of a host.
    if (!V4.matcher(address).matches() && !V6.matcher(address).matches()) {
      return NO_ADDRESS;
    }
    try {
      byte[] bytes = InetAddress.getByName(address).getAddress();
      int kept = bytes.length == 4 ? bits : Math.min(128, 2 * bits);
      for (int at = 0; at < bytes.length; at++) {
        int left = Math.max(0, Math.min(8, kept - 8 * at));
        bytes[at] &= (byte) (0xff << (8 - left));
      }
      return InetAddress.getByAddress(bytes).getHostAddress() + "/" + kept;
    } catch (UnknownHostException noAddress) {
      return NO_ADDRESS;
    }
  }
}
