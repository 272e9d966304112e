"""Graph + columns -> findings: a table of rules, each with a code, a level and, where it is safe, a fix."""

from __future__ import annotations
