"""two schemas of one table -> the columns that differ, and those with another position.

A column is its field id: another id under the same name is another column, with other values in the same files. Comments and defaults for
writers change no value that is read. Nullability changes none either, but older rows may have NULL where none is allowed now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.ports.states import Schema

Path = tuple[str, ...]
"""The name of a column in lower case; for a field of a struct, the names on the path to it. Names that differ only in case are as written:
with `spark.sql.caseSensitive`, Spark takes them for different columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDifference:
    """False if everything that a reader can see is the same."""

    columns: tuple[Path, ...]
    """Columns that were removed, added, renamed or retyped; and fields of structs with another position."""
    moved: tuple[Path, ...]
    """Columns of the table with another position: nothing changes for a query that names its columns."""
    required: tuple[Path, ...]
    """Columns and fields that may not be NULL any more. For rows that are read now, nothing changes."""

    def __bool__(self) -> bool:
        return bool(self.columns or self.moved)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all of them, for messages."""
        return tuple(".".join(path) for path in dict.fromkeys((*self.columns, *self.moved)))


def difference(before: Schema, now: Schema) -> SchemaDifference:
    """The changes between two schemas of the same table, as readers see them.

    >>> old = {"fields": [{"id": 1, "name": "id", "type": "long"}, {"id": 2, "name": "name", "type": "string"}]}
    >>> new = {"fields": [{"id": 1, "name": "id", "type": "long"}, {"id": 2, "name": "title", "type": "string"}]}
    >>> difference(old, new).columns
    (('name',), ('title',))
    """
    was, is_ = dict(_columns(before["fields"])), dict(_columns(now["fields"]))
    different = [path for path, column in was.items() if is_.get(path) != column] + [path for path in is_ if path not in was]
    moved = _moved(tuple(was), tuple(is_))
    inner = [path for path in moved if len(path) > 1]
    already = set(_required(before["fields"]))
    return SchemaDifference(
        columns=tuple(dict.fromkeys((*different, *inner))),
        moved=tuple(path for path in moved if len(path) == 1),
        required=tuple(path for path in _required(now["fields"]) if path not in already),
    )


def paths(schema: Schema) -> tuple[Path, ...]:
    """All columns of a schema, and the fields of its structs."""
    return tuple(path for path, _ in _columns(schema["fields"]))


def mark_of(schema: Schema) -> str:
    """Eight hexadecimal digits that another schema of the table does not have: an id can come again after its schema was removed."""
    fields = schema["fields"]
    return blake2b(repr((*_columns(fields), *_required(fields))).encode(), digest_size=4).hexdigest()


def _moved(before: Sequence[Path], now: Sequence[Path]) -> list[Path]:
    """Columns in both schemas with another position among those in both."""
    both = set(before) & set(now)
    parents = dict.fromkeys(path[:-1] for path in before if path in both)
    found = []
    for parent in parents:
        old, new = ([path for path in paths_ if path in both and path[:-1] == parent] for paths_ in (before, now))
        found += [path for path, other in zip(old, new, strict=True) if path != other]
    return found


def _columns(fields: Sequence[Mapping[str, Any]], parent: Path = ()) -> Iterator[tuple[Path, tuple[int, Any]]]:
    """Path -> field id and type."""
    for name, field in _named(fields):
        path, type_ = (*parent, name), field["type"]
        if isinstance(type_, Mapping) and type_["type"] == "struct":
            yield path, (field["id"], "struct")
            yield from _columns(type_["fields"], path)
        else:
            yield path, (field["id"], _shape(type_))


def _named(fields: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    same = Counter(str(field["name"]).lower() for field in fields)
    for field in fields:
        name = str(field["name"])
        yield name if same[name.lower()] > 1 else name.lower(), field


def _required(fields: Sequence[Mapping[str, Any]], parent: Path = ()) -> Iterator[Path]:
    for name, field in _named(fields):
        if field.get("required"):
            yield (*parent, name)
        yield from _required_within(field["type"], (*parent, name))


def _required_within(type_: Any, path: Path) -> Iterator[Path]:
    if not isinstance(type_, Mapping):
        return
    if type_["type"] == "struct":
        yield from _required(type_["fields"], path)
        return
    for part in ("element",) if type_["type"] == "list" else ("key", "value"):
        if type_.get(f"{part}-required"):
            yield (*path, part)
        yield from _required_within(type_[part], (*path, part))


def _shape(type_: Any) -> Any:
    """What affects values in a type: in a list or map, this includes ids, names and order of the fields of structs."""
    if not isinstance(type_, Mapping):
        return str(type_).replace(" ", "")
    if type_["type"] == "struct":
        return tuple((f["id"], str(f["name"]).lower(), _shape(f["type"])) for f in type_["fields"])
    parts = ("element",) if type_["type"] == "list" else ("key", "value")
    return (type_["type"], *((type_.get(f"{part}-id"), _shape(type_[part])) for part in parts))
