"""A dbt-spark project -> an mvbuild project, and a scorecard of what could not be taken over unchanged."""

from __future__ import annotations
