package sluice;

import java.io.IOException;
import org.apache.iceberg.shaded.org.apache.parquet.io.OutputFile;
import org.apache.iceberg.shaded.org.apache.parquet.io.PositionOutputStream;

/** A file of Iceberg as Parquet's writer wants it. Iceberg's own adapter is not public. */
final class ParquetTarget implements OutputFile {
  private final org.apache.iceberg.io.OutputFile file;

  ParquetTarget(org.apache.iceberg.io.OutputFile file) {
    this.file = file;
  }

  @Override
  public PositionOutputStream create(long blockSize) {
    return new Stream(file.create());
  }

  @Override
  public PositionOutputStream createOrOverwrite(long blockSize) {
    return new Stream(file.createOrOverwrite());
  }

  @Override
  public boolean supportsBlockSize() {
    return false;
  }

  @Override
  public long defaultBlockSize() {
    return 0;
  }

  private static final class Stream extends PositionOutputStream {
    private final org.apache.iceberg.io.PositionOutputStream stream;

    Stream(org.apache.iceberg.io.PositionOutputStream stream) {
      this.stream = stream;
    }

    @Override
    public long getPos() throws IOException {
      return stream.getPos();
    }

    @Override
    public void write(int single) throws IOException {
      stream.write(single);
    }

    @Override
    public void write(byte[] bytes, int from, int length) throws IOException {
      stream.write(bytes, from, length);
    }

    @Override
    public void flush() throws IOException {
      stream.flush();
    }

    @Override
    public void close() throws IOException {
      stream.close();
    }
  }
}
