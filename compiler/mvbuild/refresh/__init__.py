"""Plan + engine + catalog -> RunResult."""
