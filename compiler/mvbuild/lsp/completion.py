"""the text before the cursor -> what may follow: tables, columns, macros and settings in SQL; keys and words in YAML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from mvbuild.dataclass import dataclass
from mvbuild.graph.model import ModelNode
from mvbuild.lsp.definition import macro_files
from mvbuild.lsp.names import Names, name_of, properties_of, ref_name_of
from mvbuild.lsp.sql_text import Named, cte_heads, in_comment, in_template, macros, without_comments
from mvbuild.lsp.yaml_place import expected_at, levels_at
from mvbuild.names import quote
from mvbuild.project.setting_values import OneOf
from mvbuild.project.settings import MODEL_SETTINGS

Kind = Literal["table", "column", "macro", "setting", "word"]
_REF = re.compile(r"\bref\(\s*(['\"])([^'\"\n]*)\Z")
_SOURCE = re.compile(r"\bsource\(\s*(['\"])([^'\"\n]*)\Z")
_SOURCE_TABLE = re.compile(r"\bsource\(\s*['\"]([^'\"\n]*)['\"]\s*,\s*(['\"])([^'\"\n]*)\Z")
_VERSION = re.compile(r"\bref\(\s*['\"]([^'\"\n]*)['\"]\s*,\s*(?:v|version)\s*=\s*(\w*)\Z")
_SETTING = re.compile(r"\bconfig\((?:[^()]*,)?\s*(\w*)\Z")
_SETTING_WORD = re.compile(r"\bconfig\([^()]*?\b(\w+)\s*=\s*(['\"])([^'\"]*)\Z")
_TABLE = re.compile(r"\b(?:from|join)\s+([\w.`]*)\Z", re.IGNORECASE)
_QUALIFIED = re.compile(r"([^\W\d]\w*|`[^`\n]+`)\.(\w*)\Z")
_WORD = re.compile(r"\w*\Z")
_YAML_WORD = re.compile(r"[\w+.-]*\Z")
_BUILTIN = ("ref", "source", "var", "env_var", "config", "this", "target")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """`new` replaces the text from `start` to the cursor."""

    label: str
    new: str
    start: int
    kind: Kind
    detail: str = ""
    doc: str = ""


def complete(root: Path, path: str, text: str, offset: int, names: Names | None) -> tuple[Proposal, ...]:
    is_yaml = path.endswith((".yml", ".yaml"))
    found = _in_yaml(path, text, offset, names) if is_yaml else _in_sql(root, text, offset, names)
    return tuple({proposal.label: proposal for proposal in reversed(list(found))}.values())[::-1]


# --- SQL


def _in_sql(root: Path, text: str, offset: int, names: Names | None) -> Iterator[Proposal]:
    if in_comment(text, offset):
        return
    before = without_comments(text)[:offset]
    if in_template(text, offset):
        yield from _in_template(root, text, before, names)
    elif match := _QUALIFIED.search(before):
        yield from _columns(text, names, offset - len(match[2]), match[1].strip("`").lower())
        if _TABLE.search(before):
            yield from _tables(text, names, _TABLE.search(before).start(1))  # type: ignore[union-attr]
    elif match := _TABLE.search(before):
        yield from _tables(text, names, match.start(1))
    else:
        yield from _columns(text, names, offset - len(_WORD.search(before)[0]))  # type: ignore[index]


def _in_template(root: Path, text: str, before: str, names: Names | None) -> Iterator[Proposal]:
    argument = list(_arguments(before, names))
    if argument or _SETTING_WORD.search(before):
        yield from argument
    elif match := _SETTING.search(before):
        for name, setting in MODEL_SETTINGS.items():
            yield Proposal(label=name, new=f"{name}=", start=match.start(1), kind="setting", doc=setting.doc)
    elif not re.search(r"['\"]\w*\Z", before):
        start = len(before) - len(_WORD.search(before)[0])  # type: ignore[index]
        known = {name: found for file in macro_files(root, names) for name, found in macros(file.text).items()}
        for name, (_, arguments) in {**known, **macros(text)}.items():
            yield Proposal(label=name, new=name, start=start, kind="macro", detail=arguments)
        yield from (Proposal(label=name, new=name, start=start, kind="macro", detail="of mvbuild") for name in _BUILTIN)


def _arguments(before: str, names: Names | None) -> Iterator[Proposal]:
    """Arguments of ref(), source() and config(), within their quotes."""
    if match := _SETTING_WORD.search(before):
        setting = MODEL_SETTINGS.get(match[1])
        words = setting.read.words if setting and isinstance(setting.read, OneOf) else ()
        yield from (Proposal(label=word, new=word, start=match.start(3), kind="word") for word in words)
    elif names is None:
        return
    elif match := _REF.search(before):
        yield from _models(names, match.start(2))
    elif match := _VERSION.search(before):
        for node in names.versions(match[1]):
            v = repr(node.model.version.v) if node.model.version is not None else ""
            yield Proposal(label=v, new=v, start=match.start(2), kind="word", detail=str(node.identifier))
    elif match := _SOURCE_TABLE.search(before):
        tables = [table for source, table in names.sources if source.lower() == match[1].lower()]
        yield from (Proposal(label=table, new=table, start=match.start(3), kind="table") for table in tables)
    elif match := _SOURCE.search(before):
        sources = dict.fromkeys(source for source, _ in names.sources)
        yield from (Proposal(label=source, new=source, start=match.start(2), kind="table") for source in sources)


def _models(names: Names, start: int) -> Iterator[Proposal]:
    for node in names.models:
        name, doc = ref_name_of(node), properties_of(node).description
        yield Proposal(label=name, new=name, start=start, kind="table", detail=str(node.identifier), doc=doc)


def _tables(text: str, names: Names | None, start: int) -> Iterator[Proposal]:
    """CTEs by their names, models by ref() and sources by source(), which distinguish them from tables of the catalog."""
    yield from (Proposal(label=name, new=name, start=start, kind="table", detail="in this file") for name in cte_heads(text))
    if names is None:
        return
    for found in _models(names, start):
        yield replace(found, new=f"{{{{ ref('{found.label}') }}}}")
    for node in names.versions():
        yield Proposal(label=name_of(node), new=f"{{{{ {_versioned(node)} }}}}", start=start, kind="table", detail=str(node.identifier))
    for source, table in names.sources:
        yield Proposal(
            label=f"{source}.{table}", new=f"{{{{ source('{source}', '{table}') }}}}", start=start, kind="table", detail="source"
        )


def _versioned(node: ModelNode) -> str:
    version = node.model.version
    return f"ref('{node.model.ref_name}'{f', v={version.v!r}' if version is not None else ''})"


def _columns(text: str, names: Names | None, start: int, qualifier: str = "") -> Iterator[Proposal]:
    for alias, node in names.in_scope(text) if names is not None else ():
        if qualifier and qualifier != alias.lower():
            continue
        docs = {column.name.lower(): column.description for column in properties_of(node).columns}
        for column in names.columns(node) if names is not None else ():
            detail = f"{column.type or ''} of {name_of(node)}".strip()
            doc = docs.get(column.key, "")
            yield Proposal(label=column.name, new=_written(column.name), start=start, kind="column", detail=detail, doc=doc)
    for alias, cte, columns in names.ctes_in_scope(text) if names is not None else ():
        if qualifier in ("", alias.lower()):
            detail = f"of {cte}, in this file"
            yield from (Proposal(label=name, new=_written(name), start=start, kind="column", detail=detail) for name in columns)


def _written(column: str) -> str:
    return column if re.fullmatch(r"[^\W\d]\w*", column) else quote(column)


# --- YAML


def _in_yaml(path: str, text: str, offset: int, names: Names | None) -> Iterator[Proposal]:
    before = text[:offset]
    argument = list(_arguments(before, names))
    if argument:
        yield from argument
        return
    expected = expected_at(Path(path).name, text, offset)
    start = offset - len(_YAML_WORD.search(before)[0])  # type: ignore[index]
    yield from (Proposal(label=key, new=f"{key}:", start=start, kind="setting", doc=doc) for key, doc in expected.keys.items())
    yield from (Proposal(label=word, new=word, start=start, kind="word") for word in expected.words)
    yield from (Proposal(label=name, new=name, start=start, kind="table") for name in _named(expected.path, text, offset, names))


def _named(path: tuple[str, ...], text: str, offset: int, names: Names | None) -> Iterable[str]:
    """Possible values of `name:`: an existing model or seed, or a column of the one that the entry describes."""
    if names is None or path[-1:] not in (("name",), ("column_name",)):
        return ()
    if path in (("models", "name"), ("seeds", "name")):
        return [ref_name_of(node) for node in names.models if node.id.startswith(path[0][:-1])]
    if path[:1] in (("models",), ("seeds",)) and ("columns" in path or path[-1] == "column_name"):
        above = [name for _, name in levels_at(text, offset)][1:]
        described = next((name for name in above if name), "")
        node = names.node(Named(kind="ref", parts=(described,), start=0, end=0)) if described else None
        return [column.name for column in names.columns(node)] if node is not None else ()
    return ()
