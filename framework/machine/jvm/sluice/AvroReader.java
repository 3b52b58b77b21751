package sluice;

/** Reads a value of one Avro type as Spark has it. */
interface AvroReader {
  Object read(BinaryInput in);
}
