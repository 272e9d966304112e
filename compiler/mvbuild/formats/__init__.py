"""The record of a refresh and its encodings; no I/O."""
