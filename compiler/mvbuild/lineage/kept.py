"""BoundQueries <-> a file below target/: what was bound once is not bound again while text and schemas are the same."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mvbuild import __version__
from mvbuild.lineage.statement import BoundQuery, Input, OutputColumn, bind_query
from mvbuild.lineage.values import Base, Finding
from mvbuild.parse.model import Query

NAME = "lineage-cache.json"


class Kept:
    """Answers by a hash of all that they depend on. Only those that were asked for are written again."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._version = f"{__version__} {version('sqlglot')} {_code()}"
        self._known = _read(path, self._version)
        self._used: dict[str, Any] = {}
        self._is_new = False

    def bind(self, query: Query, inputs: Sequence[Input]) -> BoundQuery:
        """`bind_query`, or what it said before."""
        if self._path is None:
            return bind_query(query, inputs)
        key = _key(query, inputs)
        known = self._known.get(key)
        found = _loaded(known) if known is not None else None
        if found is not None:
            self._used[key] = known
            return found
        found, self._is_new = bind_query(query, inputs), True
        self._used[key] = _dumped(found)
        return found

    def save(self) -> None:
        """Nothing is said where it cannot be written: the next run is slower, and that is all."""
        if self._path is None or not (self._is_new or len(self._used) != len(self._known)):
            return
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps({"version": self._version, "queries": self._used}), encoding="utf-8")
            temporary.replace(self._path)
        except OSError:
            return


def _code() -> str:
    """Of the modules that bind: an installation that is being worked on has one version for many."""
    stamps = [(p.name, p.stat().st_mtime_ns, p.stat().st_size) for p in sorted(Path(__file__).parent.glob("*.py"))]
    return blake2b(repr(stamps).encode(), digest_size=8).hexdigest()


def _read(path: Path | None, wanted: str) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8")) if path is not None else {}
    except (OSError, ValueError):
        return {}
    queries = content.get("queries") if isinstance(content, dict) and content.get("version") == wanted else None
    return queries if isinstance(queries, dict) else {}


def _key(query: Query, inputs: Sequence[Input]) -> str:
    reads = [(r.start, r.kind, r.parts, r.alias) for r in query.reads]
    given = [(i.complete, i.spellings, [(c.name, c.type) for c in i.columns]) for i in inputs]
    return blake2b(repr((query.sql.text, reads, given)).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _dumped(found: BoundQuery) -> list[Any]:
    return [
        [[c.name, c.type, c.place] for c in found.columns],
        found.complete,
        [sorted(bases) for bases in found.values],
        sorted(found.rows),
        sorted(found.unsure),
        [[f.code, f.message, f.start, f.end, f.help, f.severity] for f in found.findings],
    ]


def _loaded(kept: Any) -> BoundQuery | None:
    """None for what no version of this module wrote."""
    try:
        columns, complete, values, rows, unsure, findings = kept
        return BoundQuery(
            columns=tuple(OutputColumn(name=n, type=t, place=(p[0], p[1]) if p is not None else None) for n, t, p in columns),
            complete=bool(complete),
            values=tuple(frozenset(Base(*b) for b in bases) for bases in values),
            rows=frozenset(Base(*b) for b in rows),
            unsure=frozenset(unsure),
            findings=tuple(Finding(*f) for f in findings),
        )
    except (TypeError, ValueError, IndexError, KeyError):
        return None
