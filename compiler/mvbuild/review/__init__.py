"""Two versions of a project -> what changed, of which kind, for whom, and what it costs to refresh."""

from __future__ import annotations
