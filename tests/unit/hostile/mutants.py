"""seed -> Mutant: a project with some damaged files, in the usual ways and in worse ones."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mvbuild.lint.rules import RULES
from unit.lint.linted import SHOP

_SAMPLE = Path(__file__).parents[3] / "sample_project"
_ROWS = 30

_SHOP = {
    "mvbuild.yml": "name: shop\nvars:\n  kinds: [web, shop]\n  day: 2026-01-01\nlint: {select-star: warning}\nmodels:\n  mart: {+tags: [daily]}\n",
    "schemas.lock": "version: 1\ntables:\n  raw.orders:\n    uuid: 6a1\n    columns: {id: int, customer_id: int, day: date, amount: 'decimal(10,2)', note: string}\n",
    "macros/money.sql": "{% macro cents(column, digits=2) -%}\n  round({{ column }} / 100, {{ digits }})\n{%- endmacro %}\n{% macro each(of) %}{% for x in of %}{{ caller(x) }}{% if not loop.last %}, {% endif %}{% endfor %}{% endmacro %}\n",
    "models/base.yml": """
sources:
  - name: raw
    description: Tables of the shop.
    tables:
      - name: orders
        columns: &columns
          - {name: id, data_type: int, data_tests: [unique, not_null]}
          - {name: day, data_type: date}
models:
  - name: orders_clean
    description: "Orders — ohne Müll 🧹."
    config: &config {materialized: view}
    columns: *columns
  - name: revenue
    description: |
      Revenue
        per day.
    config:
      <<: *config
      materialized: materialized_view
      partition_by: [month(day)]
      freshness: {max_staleness: 1h}
    columns:
      - name: day
        data_tests:
          - accepted_values: {values: [2026-01-01, '{{ var("day") }}']}
          - relationships: {to: ref('orders_clean'), field: day}
""",
    "models/orders_clean.sql": "-- the orders\nSELECT id, customer_id, day, {{ cents('amount') }} AS amount, '{{ var('day') }}' AS made -- mvbuild: allow(clock) for tests\nFROM {{ source('raw', 'orders') }} AS o\nWHERE note <> 'test' AND day >= DATE '2020-01-01'\n",
    "models/mart/revenue.sql": """{{ config(tags=['a', 'b'], alias='revenue_daily') }}
{%- set kinds = var('kinds') %}
WITH o AS (
  SELECT *, row_number() OVER (PARTITION BY customer_id ORDER BY day DESC) AS n FROM {{ ref('orders_clean') }}
)
SELECT o.day, c.country,
  {% for kind in kinds %}
  sum(CASE WHEN c.name = '{{ kind }}' THEN o.amount ELSE 0 END) AS {{ kind | lower }},
  {% endfor %}
  {% call(x) each(['min', 'max']) %}{{ x }}(o.amount) AS {{ x }}_amount{% endcall %}
FROM o LEFT JOIN {{ ref('customers') }} AS c ON c.id = o.customer_id AND o.n = 1
GROUP BY o.day, c.country HAVING count(*) > 1e0
UNION ALL SELECT day, 'x', 1, 2, amount, CAST(amount AS DECIMAL(10, 2)) FROM orders_clean TABLESAMPLE (10 PERCENT) LATERAL VIEW explode(array(1, 2)) e AS q
""",
    "seeds/customers.csv": 'id,name,country\n1,"Ann, ""A""",DE\n2,Ben,\n3,"",NL\n',
    "seeds/customers.yml": "seeds:\n  - name: customers\n    config: {column_types: {id: int}, delimiter: ','}\n",
    "tests/no_zero.sql": "{{ config(severity='warn') }}\nselect * from {{ ref('revenue') }} where web = 0\n",
}
"""One of everything."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """`files` contains bytes; other kinds of files are created from other values."""

    seed: int
    files: Mapping[str, bytes | Callable[[Path], object]]
    done: tuple[str, ...]
    """What was done to it, in words."""

    def lay_out(self, root: Path) -> None:
        for path, content in self.files.items():
            file = root / path
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                _ = file.write_bytes(content) if isinstance(content, bytes) else content(file)
            except OSError:
                continue  # a name that this file system does not take, or a folder where a file was to be


@cache
def bases() -> tuple[Mapping[str, bytes], ...]:
    """Projects to damage: one of everything, those of the lint rules, and the sample with short seeds."""
    shops = [{name: text.encode() for name, text in _SHOP.items()}] * len(RULES)
    rules = [{name: text.encode() for name, text in {**SHOP, **files}.items()} for r in RULES for files in (r.wrong, r.right)]
    paths = [p for p in sorted(_SAMPLE.rglob("*")) if p.is_file() and p.suffix in (".yml", ".sql", ".csv") and "target" not in p.parts]
    sample = {str(p.relative_to(_SAMPLE)): _shortened(p) for p in paths}
    return (*shops, *rules, sample)


def _shortened(path: Path) -> bytes:
    return b"".join(path.read_bytes().splitlines(keepends=True)[: _ROWS if path.suffix == ".csv" else None])


def mutant(seed: int) -> Mutant:
    """The same for the same seed."""
    draw = random.Random(seed)
    files: dict[str, bytes | Callable[[Path], object]] = dict(draw.choice(bases()))
    done = []
    for _ in range(draw.choice((1, 1, 1, 1, 2))):
        path = _drawn(draw, [p for p, content in files.items() if isinstance(content, bytes)] or ["mvbuild.yml"])
        if draw.random() < 0.08:
            change = draw.choice(_OF_FILES)
            change(draw, files, path)
            done.append(f"{change.__name__}({path})")
            continue
        for _ in range(draw.choice((1, 1, 1, 1, 2, 4))):
            change = draw.choice(_OF_BYTES if draw.random() < 0.3 else _OF_TEXT)
            content = files.get(path, b"")
            if isinstance(content, bytes):
                files[path] = change(draw, content)
                done.append(f"{change.__name__}({path})")
    return Mutant(seed=seed, files=files, done=tuple(done))


def _drawn(draw: random.Random, paths: list[str]) -> str:
    """Models before all: without mvbuild.yml nothing else is read."""
    weights = [8 if path.endswith(".sql") else 1 if path == "mvbuild.yml" else 3 for path in paths]
    return draw.choices(paths, weights)[0]


# Bytes


def _flip(draw: random.Random, text: bytes) -> bytes:
    at = draw.randrange(len(text) + 1)
    return text[:at] + bytes([draw.randrange(256)]) + text[at + 1 :]


def _cut(draw: random.Random, text: bytes) -> bytes:
    return text[: draw.randrange(len(text) + 1)]


def _behead(draw: random.Random, text: bytes) -> bytes:
    return text[draw.randrange(len(text) + 1) :]


def _delete(draw: random.Random, text: bytes) -> bytes:
    at = draw.randrange(len(text) + 1)
    return text[:at] + text[at + draw.randrange(1, 30) :]


def _double(draw: random.Random, text: bytes) -> bytes:
    at = draw.randrange(len(text) + 1)
    end = at + draw.randrange(1, 80)
    return text[:end] + text[at:end] * draw.choice((1, 2, 50)) + text[end:]


def _odd_bytes(draw: random.Random, text: bytes) -> bytes:
    return _in(
        draw,
        text,
        draw.choice((b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", b"\x80", b"\x1b[31m", b"\r")),
    )


def _utf16(draw: random.Random, text: bytes) -> bytes:
    return text.decode("utf-8", "replace").encode(draw.choice(("utf-16", "utf-16-le", "utf-32", "latin-1", "cp037")), "replace")


def _crlf(draw: random.Random, text: bytes) -> bytes:
    return text.replace(b"\n", draw.choice((b"\r\n", b"\r", b"\n\r", "\u2028".encode(), b"\x0b", b"\x85")))


def _bom(draw: random.Random, text: bytes) -> bytes:
    return b"\xef\xbb\xbf" * draw.choice((1, 2)) + text


# Text: words and what has a meaning

_ODD = (
    *(
        "\u200b",
        "\ufeff",
        "\u202e",
        "\u00a0",
        "\u2028",
        "\x85",
        "é",
        "e\u0301",
        "🧹",
        "👩‍👩‍👧",
        "漢字",
        "\U000e0041",
        "\ufdd0",
        "\ufdd10\ufdd1",
        "\ufffd",
        "ﬁ",
        "²",
        "٣",
        "İ",
        "ß",
    ),
    *(
        "'",
        '"',
        "`",
        "''",
        "\\",
        "\\'",
        "--",
        "/*",
        "*/",
        "#",
        "%",
        ";",
        "\t",
        "\n",
        "\n\n\n",
        "\f",
        "$",
        "@",
        "^",
        "|>",
        "::",
        "->",
        "=>",
        ":",
        "?",
        "!",
        "&",
        "~",
    ),
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "{{",
        "}}",
        "{%",
        "%}",
        "{#",
        "#}",
        "{%-",
        "-%}",
        "{{-",
        "- ",
        "<<: ",
        "&a ",
        "*a ",
        "*columns",
        "!!python/object:os.system ",
        "!x ",
        "|\n",
        ">\n",
        "---\n",
        "...\n",
        "%YAML 9\n",
        "? ",
        "~",
        ", ",
    ),
    *(
        "null",
        "true",
        "no",
        "0",
        "-1",
        "1e999",
        "0x" + "f" * 20,
        "9" * 30,
        "9" * 5000,
        "1:59:59",
        "2026-99-99",
        "0001-01-01",
        "9999-12-31T23:59:60Z",
        ".inf",
        ".nan",
        "1_000",
        "0o9",
        "=",
        "1e-400",
        "NaN",
    ),
    *(
        "{{ ref('revenue') }}",
        "{{ ref(1) }}",
        "{{ ref('x', 'y', 'z') }}",
        "{{ source('raw') }}",
        "{{ this }}",
        "{{ this.x }}",
        "{{ var('nope') }}",
        "{{ env_var('NOPE') }}",
        "{{ config(a=1) }}",
        "{{ config(1) }}",
        "{{ config(enabled=false) }}",
        "{{ config(materialized='ephemeral') }}",
        "{{ none.x }}",
        "{{ [] | first }}",
        "{{ loop }}",
        "{{ caller() }}",
        "{{ return(1) }}",
        "{{ is_incremental() }}",
        "{{ 1 / 0 }}",
        "{{ 'a' * 10 ** 9 }}",
        "{{ range(10 ** 9) }}",
        "{{ exceptions.warn('w') }}",
        "{{ x | map('y') | list }}",
        "{{ ''.__class__ }}",
        "{{ {}|tojson }}",
        "{{ varargs }}",
        "{{ super() }}",
    ),
    *(
        "{% for i in range(9) %}",
        "{% endfor %}",
        "{% if 1 %}",
        "{% endif %}",
        "{% set x %}",
        "{% endset %}",
        "{% set x = [1] %}",
        "{% macro m(a) %}",
        "{% endmacro %}",
        "{% raw %}",
        "{% endraw %}",
        "{% include 'x' %}",
        "{% break %}",
        "{% do x %}",
        "{% block b %}",
        "{% filter upper %}",
        "{% endfilter %}",
        "{% with %}",
        "{% docs d %}",
        "{% test t(m) %}",
        "{% snapshot s %}",
        "{% call m() %}",
    ),
    *(
        "select",
        "from",
        "where",
        "join",
        "union all",
        "with x as (",
        "case when",
        "end",
        "over (",
        "group by all",
        "order by 1",
        "limit 1",
        "lateral view",
        "tablesample (1 rows)",
        "pivot (",
        "values (1)",
        "version as of 1",
        "timestamp as of 'x'",
        "insert into t",
        "; select 1",
        "interval 1 day",
        "date 'x'",
        "1.",
        ".5",
        "1e",
        "x'ff'",
        "r'\\'",
        "cast(1 as",
        "struct<a:",
        "array<int>",
        "a.b.c.d",
        "t.*",
        "except (a)",
        "exists(",
        "not",
        "in ()",
        "is null",
        "between",
        "like",
        "transform",
        "explode(",
        "stack(2, 1)",
        "-- mvbuild: allow(",
        "-- mvbuild: allow(clock)",
        "/*+ broadcast(x) */",
        "grouping sets (())",
        "qualify",
        "distribute by",
        "from_json(a, 'x')",
        "named_struct(1)",
        "a -> a",
        "identifier('x')",
        "table(x)",
        "json:a.b",
        "${x}",
        ":p",
        "?",
    ),
    *(
        "models:",
        "sources:",
        "seeds:",
        "name: ",
        "columns:",
        "config: ",
        "data_tests: ",
        "vars:",
        "targets:",
        "- name: x\n",
        "enabled: false",
        "materialized: table",
        "partition_by: ",
        "contract: {enforced: true}",
        "freshness: 1",
        "tables: ",
        "catalog: ",
        "properties: ",
        "type: deltalake-filesystem",
        "path: ../..",
        "+tags: 1",
        "meta: {a: {b: [1]}}",
        "description: ",
        "lint: {x: y}",
        "model-paths: ",
        "model-paths: [..]",
        "target-path: .",
        "delimiter: ''",
        "delimiter: '\\n'",
        "column_types: {id: bigit}",
        "version: ",
    ),
)


def _text(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _in(draw: random.Random, text: bytes, piece: bytes) -> bytes:
    at = draw.randrange(len(text) + 1)
    return text[:at] + piece + text[at:]


def _words(text: str) -> list[str]:
    """Pieces that make the text when they are joined."""
    import re

    return re.findall(r"\w+|\s+|[^\w\s]", text)


def _odd_word(draw: random.Random, text: bytes) -> bytes:
    words = _words(_text(text))
    words.insert(draw.randrange(len(words) + 1), draw.choice(_ODD))
    return _bytes("".join(words))


def _exchange(draw: random.Random, text: bytes) -> bytes:
    words = _words(_text(text)) or [""]
    words[draw.randrange(len(words))] = draw.choice(_ODD)
    return _bytes("".join(words))


def _swap(draw: random.Random, text: bytes) -> bytes:
    words = _words(_text(text)) or [""]
    a, b = draw.randrange(len(words)), draw.randrange(len(words))
    words[a], words[b] = words[b], words[a]
    return _bytes("".join(words))


def _lose(draw: random.Random, text: bytes) -> bytes:
    words = _words(_text(text))
    return _bytes("".join(w for w in words if draw.random() > 3 / (len(words) + 1)))


def _repeat(draw: random.Random, text: bytes) -> bytes:
    words = _words(_text(text)) or [""]
    at = draw.randrange(len(words))
    words[at] *= draw.choice((2, 3, 1000))
    return _bytes("".join(words))


def _shuffle_lines(draw: random.Random, text: bytes) -> bytes:
    lines = text.splitlines(keepends=True)
    draw.shuffle(lines)
    return b"".join(lines)


def _double_line(draw: random.Random, text: bytes) -> bytes:
    lines = text.splitlines(keepends=True) or [b""]
    at = draw.randrange(len(lines))
    return b"".join([*lines[: at + 1], lines[at] * draw.choice((1, 1, 3)), *lines[at + 1 :]])


def _indent(draw: random.Random, text: bytes) -> bytes:
    lines = text.splitlines(keepends=True) or [b""]
    at = draw.randrange(len(lines))
    lines[at] = draw.choice((b" ", b"  ", b"\t", b"", b"- ")) + lines[at].lstrip() if draw.random() < 0.5 else b" " + lines[at]
    return b"".join(lines)


def _case(draw: random.Random, text: bytes) -> bytes:
    return _bytes(draw.choice((str.upper, str.lower, str.swapcase, str.title))(_text(text)))


def _nest(draw: random.Random, text: bytes) -> bytes:
    times = draw.choice((3, 90, 500, 5000))
    opening, closing = draw.choice(
        (
            ("(", ")"),
            ("[", "]"),
            ("{", "}"),
            ("{{", "}}"),
            ("{% if 1 %}", "{% endif %}"),
            ("{% for a in [1] %}", "{% endfor %}"),
            ("{a: ", "}"),
            ("- ", ""),
            ("select * from (", ")"),
            ("case when a then ", " end"),
            ("/*", "*/"),
            ("not ", ""),
            ("a or ", ""),
            ("{% set x %}", "{% endset %}"),
            ("{% macro a() %}", "{% endmacro %}"),
        )
    )
    at = draw.randrange(len(text) + 1)
    middle = draw.choice((b"", b"1", text[at : at + 10]))
    ends = draw.choice((times, times - 1, 0))
    return text[:at] + opening.encode() * times + middle + closing.encode() * ends + text[at:]


def _long_line(draw: random.Random, text: bytes) -> bytes:
    return _in(
        draw,
        text,
        draw.choice((b"x", b" ", b"'", b"\xc3\xa9", b"a,", b"1 + ", b"# ", b"\t", b"\n", b"a: ", b"{# #}"))
        * draw.choice((300, 5000, 100_000)),
    )


def _blank(draw: random.Random, text: bytes) -> bytes:
    return draw.choice(
        (b"", b" ", b"\n", b"\t\n", b"null", b"[]", b"{}", b"1", b"--", b"{{ }}", b"{##}", b"'", b"\0", b"\xef\xbb\xbf", b",\n,\n")
    )


# Files


def _as_directory(draw: random.Random, files: dict[str, bytes | Callable[[Path], object]], path: str) -> None:
    files[path] = lambda file: file.mkdir()


def _as_pipe(draw: random.Random, files: dict[str, bytes | Callable[[Path], object]], path: str) -> None:
    files[path] = os.mkfifo


def _as_link(draw: random.Random, files: dict[str, bytes | Callable[[Path], object]], path: str) -> None:
    to = draw.choice(
        (
            "nowhere",
            path.rpartition("/")[2],
            "..",
            ".",
            "/dev/zero",
            "/dev/null",
            "/proc/self/mem",
            "/proc/self/environ",
            "/root",
            "../pipe",
        )
    )
    files["pipe"] = os.mkfifo
    files[path] = lambda file: file.symlink_to(to)


def _unreadable(draw: random.Random, files: dict[str, bytes | Callable[[Path], object]], path: str) -> None:
    content = files[path]
    assert isinstance(content, bytes)
    files[path] = lambda file: (file.write_bytes(content), file.chmod(0))


def _gone(draw: random.Random, files: dict[str, bytes | Callable[[Path], object]], path: str) -> None:
    del files[path]


def _elsewhere(draw: random.Random, files: dict[str, bytes | Callable[[Path], object]], path: str) -> None:
    """Under another name: in another case, with another ending, in another folder."""
    folder, _, name = path.rpartition("/")
    stem, _, ending = name.rpartition(".")
    new = draw.choice(
        (
            name.upper(),
            name.title(),
            f"{stem} copy.{ending}",
            f"{stem}.{ending}.{ending}",
            f"{stem}.yml",
            f"{stem}.sql",
            f"{stem}.csv",
            f".{name}",
            f"ünï 🧹.{ending}",
            f"a'b`c\"d.{ending}",
            f"x\ny.{ending}",
            f"-- {name}",
            f"{{{{ x }}}}.{ending}",
            f"{'l' * 200}.{ending}",
            f"select.{ending}",
            f"{stem}__storage.{ending}",
            f"1.{ending}",
            f" .{ending}",
            f"a.b.{ending}",
        )
    )
    folder = draw.choice((folder, f"{folder}/deeper", "models", "seeds", "macros", "tests", "target"))
    content = files[path]
    if draw.random() < 0.5:
        del files[path]
    files[f"{folder}/{new}" if folder else new] = content


def _of_another(draw: random.Random, files: dict[str, bytes | Callable[[Path], object]], path: str) -> None:
    """The content of another file, of any kind."""
    files[path] = draw.choice([content for content in files.values() if isinstance(content, bytes)])


_OF_BYTES = (_flip, _cut, _behead, _delete, _double, _odd_bytes, _utf16, _crlf, _bom, _blank)
_OF_TEXT = (
    _odd_word,
    _odd_word,
    _exchange,
    _exchange,
    _exchange,
    _swap,
    _swap,
    _lose,
    _repeat,
    _shuffle_lines,
    _double_line,
    _indent,
    _case,
    _nest,
    _long_line,
)
_OF_FILES = (_as_directory, _as_pipe, _as_link, _unreadable, _gone, _elsewhere, _elsewhere, _of_another)


def clear(root: Path) -> None:
    """Take a project away, whatever was made of it."""
    for folder, _, _ in os.walk(root):
        Path(folder).chmod(0o700)
    shutil.rmtree(root)
