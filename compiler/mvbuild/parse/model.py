"""The result types of parsing: ParsedModel, Query and the tables that a query reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic
from mvbuild.project.counting import DEFAULT, Counting
from mvbuild.project.loaded import ModelVersion, Properties
from mvbuild.project.setting import Layer
from mvbuild.project.settings import ModelConfig
from mvbuild.source import MappedText, SourceFile, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeTravel:
    """`VERSION AS OF 1`, `FOR TIMESTAMP AS OF '...'`: a version that the user chose. Offsets are of the clause in the query's text."""

    kind: Literal["version", "timestamp"]
    value: str | int
    """A snapshot id, the name of a branch or tag, or a timestamp literal."""
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One reference to a table in a query. Offsets are of the table's name in the query's text."""

    kind: Literal["name", "ref", "source"]
    parts: tuple[str, ...]
    """The name as written, without quotes: ("raw", "orders"); for ref() the model's name; for source() source and table."""
    start: int
    end: int
    span: Span
    alias: str | None
    travel: TimeTravel | None
    qualifiers: tuple[tuple[int, int], ...]
    """The offsets of qualifiers, where columns (and stars) are qualified by this table's written name. Empty if there is an alias."""
    tail: int = 0
    """Where an alias may be added: after the time-travel, WITH (options) and TABLESAMPLE clauses. 0 means directly after the name."""
    wrap: tuple[int, str, str] | None = None
    """For `TABLE name`, which Spark allows neither a version nor an alias: the offset to replace from, and what to put around the new text.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One SELECT statement: the output of the user's template, and every table that it reads, in the order of the text."""

    sql: MappedText
    reads: tuple[Read, ...]
    columns: tuple[str, ...] | None
    """Names of the output columns as written; None if a star makes them depend on the catalog."""
    names: tuple[str, ...] = ()
    """Names in lower case that it reads as columns and gives to nothing: columns of its tables, if there is no mistake."""


Asked = tuple[str, tuple[str, ...], "str | None"]
"""What a template asked of the project: ref, source, var or env_var, the names in the call, and the answer or a hash of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """The output of a template. `text` is None if it could not be rendered completely."""

    text: MappedText | None
    layers: tuple[Layer, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    asked: tuple[Asked, ...] = ()
    is_plain: bool = True
    """Whether it depends only on its own text and what it asked: on no macro, and on no name such as `target`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedModel:
    """A model file after rendering and parsing."""

    name: str
    file: SourceFile
    folders: tuple[str, ...]
    config: ModelConfig
    properties: Properties
    query: Query
    problems: tuple[Diagnostic, ...] = ()
    """What is wrong with it; if the query could not be read, it has only its text."""
    knows_settings: bool = True
    """False if its template or its `config()` is wrong: then it may be of another kind, and have another name."""
    mentions: tuple[tuple[str, ...], ...] = ()
    """Names in the file of such a model that may be those of tables, more than it reads: of models in ref(), and others part by part."""
    version: ModelVersion | None = None

    @property
    def ref_name(self) -> str:
        """What ref() calls it. The versions of a model share this name."""
        return self.name if self.version is None else self.version.model

    @property
    def needs_version(self) -> bool:
        """Whether ref() names it only with `v=`, because another version is the latest."""
        return self.version is not None and not self.version.is_latest


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedTest:
    """A SQL test: it fails for every row that its query returns."""

    name: str
    file: SourceFile
    severity: Literal["error", "warn"]
    query: Query
    counting: Counting = DEFAULT
    group: str | None = None
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
