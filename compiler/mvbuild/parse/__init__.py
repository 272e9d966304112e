"""templates and SQL -> ParsedModel."""
