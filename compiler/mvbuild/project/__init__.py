"""files on disk -> LoadedProject."""
