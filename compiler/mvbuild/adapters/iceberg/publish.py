"""edits of tables and views -> new metadata files -> one swap of all their pointers: the only place that changes a catalog of files."""

from __future__ import annotations

import random
import re
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg.metadata import Raw, parse, serialize
from mvbuild.adapters.iceberg.pointers import Key, Kind, Pointers, Swap
from mvbuild.adapters.iceberg.tables import metadata_folder, renewed
from mvbuild.ports.catalog import CatalogError, CommitConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mvbuild.adapters.iceberg.files import Files
    from mvbuild.names import TableIdentifier

_TRIES = 12
_BACKOFF_SECONDS = 0.02
_NUMBER = re.compile(r"(\d+)-[^/]*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """What a name stands for now."""

    kind: Kind
    location: str
    raw: Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """`make` gets what the name stands for (None: nothing) and gives the new metadata, or raises what forbids it.

    It is called again from fresh metadata when another process was faster, so it must check all that it relies on.
    """

    identifier: TableIdentifier
    kind: Kind
    make: Callable[[Current | None], Raw]


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A new metadata file that its pointer shows."""

    identifier: TableIdentifier
    kind: Kind
    location: str
    raw: Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    swap: Swap
    raw: Raw
    dropped: tuple[str, ...]


def key(identifier: TableIdentifier) -> Key:
    return ".".join(identifier.namespace), identifier.name


def publish(pointers: Pointers, files: Files, edits: Sequence[Edit]) -> tuple[Published, ...]:
    """All edits or none. Lost races are run again as long as the edits themselves agree."""
    if len({key(edit.identifier) for edit in edits}) < len(edits):
        raise CatalogError("A commit can change each table or view only once.")
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_BACKOFF_SECONDS * min(attempt, 5) * (0.5 + random.random()))
        prepared = _prepare(pointers, files, edits)
        if _swap(pointers, files, prepared):
            for location in (d for p in prepared for d in p.dropped):
                # The commit stands: an old file that could not be deleted is only a file too many.
                with suppress(OSError):
                    files.delete(location)
            return tuple(
                Published(identifier=edit.identifier, kind=edit.kind, location=p.swap.new, raw=p.raw)
                for edit, p in zip(edits, prepared, strict=True)
            )
    names = ", ".join(str(edit.identifier) for edit in edits)
    raise CommitConflict(f"Other processes changed {names} {_TRIES} times in a row.")


def read(files: Files, identifier: TableIdentifier, location: str, kind: Kind) -> Raw:
    """CatalogError, naming table and file, if it cannot be read."""
    return decoded(identifier, location, kind, files.read_all([location])[0])


def decoded(identifier: TableIdentifier, location: str, kind: Kind, content: bytes | Exception) -> Raw:
    try:
        if isinstance(content, Exception):
            raise content
        return parse(content, location)
    except FileNotFoundError:
        reason = "the file does not exist"
    except Exception as error:  # noqa: BLE001  whatever the file or its store did wrong
        reason = f"{type(error).__name__}: {error}"
    raise CatalogError(f"The metadata of {kind.lower()} {identifier} cannot be read: {location} ({reason}).")


def _prepare(pointers: Pointers, files: Files, edits: Sequence[Edit]) -> list[_Prepared]:
    found = pointers.find(key(edit.identifier) for edit in edits)
    result = []
    for edit in edits:
        location, kind = found.get(key(edit.identifier), (None, edit.kind))
        current = None
        if location is not None:
            current = Current(kind=kind, location=location, raw=read(files, edit.identifier, location, kind))
        raw = edit.make(current)
        dropped: tuple[str, ...] = ()
        if current is not None and edit.kind == "TABLE":
            raw, dropped = renewed(raw, current.raw, current.location)
        swap = Swap(key=key(edit.identifier), kind=edit.kind, old=location, new=_next_location(raw, location, edit.kind))
        result.append(_Prepared(swap=swap, raw=raw, dropped=dropped))
    return result


def _swap(pointers: Pointers, files: Files, prepared: Sequence[_Prepared]) -> bool:
    new = [p.swap.new for p in prepared]
    try:
        for p in prepared:
            files.write(p.swap.new, serialize(p.raw, p.swap.new))
        done = pointers.swap([p.swap for p in prepared])
    except Exception:
        if _arrived(pointers, prepared):
            return True
        _discard(files, new)
        raise
    if not done:
        _discard(files, new)
    return done


def _arrived(pointers: Pointers, prepared: Sequence[_Prepared]) -> bool:
    """Whether a commit whose answer was lost was made. Who cannot find out must not delete the files that it may need."""
    found = pointers.find(p.swap.key for p in prepared)
    return all(found.get(p.swap.key, ("", ""))[0] == p.swap.new for p in prepared)


def _discard(files: Files, locations: Sequence[str]) -> None:
    for location in locations:
        with suppress(OSError):
            files.delete(location)


def _next_location(raw: Raw, old: str | None, kind: Kind) -> str:
    number = _NUMBER.search(old) if old else None
    first = 1 if kind == "VIEW" else 0
    version = int(number[1]) + 1 if number else first
    codec = (raw.get("properties") or {}).get("write.metadata.compression-codec", "none").lower() if kind == "TABLE" else "none"
    suffix = ".gz.metadata.json" if codec == "gzip" else ".metadata.json"
    return f"{metadata_folder(raw)}/{version:05d}-{uuid.uuid4()}{suffix}"
