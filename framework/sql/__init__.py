"""SQL expressions: read, typed and made safe before Spark sees them."""
