package sluice;

/** Reads a value of one Avro type into a cell. */
interface AvroReader {
  void read(BinaryInput in, Cells cells, int place);
}
