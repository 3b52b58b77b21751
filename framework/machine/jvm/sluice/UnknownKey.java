package sluice;

/** A value is encrypted by a key that the mask does not list, or by another secret than that of the key it names. */
final class UnknownKey extends IllegalStateException {
  UnknownKey(String message) {
    super(message);
  }
}
