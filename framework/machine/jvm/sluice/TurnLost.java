package sluice;

/** Somebody else has taken the turn: nothing more is sent. */
final class TurnLost extends RuntimeException {
  TurnLost(Turn turn, Throwable cause) {
    super("another sender has taken the turn " + turn.name(), cause);
  }
}
