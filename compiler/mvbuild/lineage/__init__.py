"""Graph + schemas of base tables -> columns and types of every model, and from which base columns each comes."""

from __future__ import annotations
