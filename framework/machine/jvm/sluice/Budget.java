package sluice;

/** How many places the structs of one message may have: `{}` is two bytes, and a thousand places where the struct has a thousand fields. */
final class Budget {
  private static final int MOST = 10_000_000;

  private int left = MOST;

  void spend(int places) {
    left -= places;
    if (left < 0) {
      throw BadMessage.of(BadMessage.TOO_LARGE, "the message has structs of over " + MOST + " fields in all");
    }
  }
}
