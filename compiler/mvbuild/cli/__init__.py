"""argv -> api calls -> text and exit codes."""
