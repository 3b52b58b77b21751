package sluice;

/** Makes a column's value of what {@link ProtobufReader} read; it is not asked for an absent value. */
interface ProtobufColumn {
  Object of(Object read);
}
