"""the checked-in tables of trials -> Proofs: what an engine computes as Spark does, by the signatures of expressions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

from mvbuild.dataclass import dataclass

ENGINES: Mapping[str, str] = {"trino": "trino.json"}
"""Dialects with a table. Definitions are published in no other dialect, because their results there are unknown."""
UNKNOWN = "?"
"""In a signature, an unknown type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """One signature."""

    cast: bool
    """Whether the engine's result has another type than Spark's, so that it is cast to Spark's."""
    trials: int = 0
    """How many expressions gave the same result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proofs:
    """The proofs of one engine."""

    version: str
    proven: Mapping[str, Proof]
    differs: Mapping[str, str]
    """Signature -> the first difference that the trials found."""

    def may_have(self, signature: str) -> bool:
        """Whether a signature with unknown types can be a proven one."""
        pattern = re.compile(r"[\w ().'…]*?".join(re.escape(part) for part in signature.split(UNKNOWN)))
        return any(pattern.fullmatch(one) for one in self.proven)


@lru_cache(maxsize=4)
def proofs(dialect: str) -> Proofs:
    """The table of a dialect in ENGINES."""
    return of_json(files("mvbuild.dialects").joinpath(ENGINES[dialect]).read_text(encoding="utf-8"))


def of_json(text: str) -> Proofs:
    found = json.loads(text)
    proven = {s: Proof(cast=row["cast"], trials=row["trials"]) for s, row in found["proven"].items()}
    return Proofs(version=found["version"], proven=proven, differs=found["differs"])


def to_json(found: Proofs) -> str:
    proven = {s: {"cast": p.cast, "trials": p.trials} for s, p in sorted(found.proven.items())}
    lines = {"version": found.version, "proven": proven, "differs": dict(sorted(found.differs.items()))}
    return json.dumps(lines, indent=1, ensure_ascii=False) + "\n"
