"""SQL expressions: parsed, typed and made safe before Spark runs them."""
