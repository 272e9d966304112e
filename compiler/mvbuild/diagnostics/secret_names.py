"""The names of keys and settings whose values are secrets: one pattern for messages, logs, command lines and Spark's own plans."""

from __future__ import annotations

SECRET_NAMES = (
    r"password|passwd|pwd|secret|token|credential|authorization|cookie|header\.|"
    r"(?:access|account|api|private|shared)[-_.]?key|connection[-_.]string|\bsas\b|sas[-_.]"
)
"""Part of a name, in any case. Python's and Java's regular expressions both accept it."""
