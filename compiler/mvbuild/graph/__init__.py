"""ParsedModels -> Graph."""
