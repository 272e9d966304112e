"""files of the project -> passwords, tokens and keys in them. The findings never repeat their values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from mvbuild.lint.model import Found, Rule
from mvbuild.project.yaml_spans import ListNode, MapNode, Node, ScalarNode, read_yaml
from mvbuild.source import SourceFile, Span

_KNOWN: tuple[tuple[str, str], ...] = (
    ("an AWS access key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    ("a GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})"),
    ("a GitLab token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("a Databricks token", r"\bdapi[0-9a-f]{32}(?:-\d+)?\b"),
    ("a Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("a Google key", r"\bAIza[0-9A-Za-z_-]{35}"),
    ("a Stripe key", r"\b[sr]k_live_[0-9A-Za-z]{16,}"),
    ("an API key", r"\bsk-(?:[a-z]+-)*[A-Za-z0-9_-]{32,}"),
    ("a JSON web token", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{8,}"),
    ("a private key", r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----(?:[^-]*-----END (?:[A-Z]+ )*PRIVATE KEY-----)?"),
    ("an Azure account key", r"(?i:AccountKey|SharedAccessKey)=(?P<secret>[A-Za-z0-9+/=]{20,})"),
    ("an Azure signature", r"[?&;]sig=(?P<secret>[A-Za-z0-9%+/=]{20,})"),
    ("a password in a URL", r"://[^/\s@:'\"]*:(?P<secret>(?!\{\{)[^/\s@'\"]+)@"),
)
_FORMATS = tuple((what, re.compile(pattern)) for what, pattern in _KNOWN)
_WORDS = (
    r"(?:password|passwd|passphrase|pwd|secret|secret[-_.]?key|(?:secret[-_.]?)?access[-_.]?key|token|credentials?|api[-_.]?key|private[-_.]?key"
    r"|account[-_.]?key|client[-_.]?secret)"
)
_NAME = re.compile(rf"(?:.*[-_.])?{_WORDS}\Z|.*(?:Password|Secret|Token|ApiKey|AccessKey|SecretKey|PrivateKey)\Z", re.IGNORECASE)
_AZURE = re.compile(r".*account\.key\..*\.net\Z", re.IGNORECASE)
_ASSIGNED = re.compile(
    rf"""(?P<name>\b[\w.-]*{_WORDS})["'`]?\s*(?:=>|=)\s*(?P<quote>["'])(?P<secret>(?:(?!(?P=quote))[^\n\\]|\\.)+)(?P=quote)""",
    re.IGNORECASE,
)
_ENV_DEFAULT = re.compile(
    rf"""env_var\(\s*["'][\w.-]*{_WORDS}["']\s*,\s*(?:default\s*=\s*)?(?P<quote>["'])(?P<secret>[^"'\n]+)(?P=quote)""", re.IGNORECASE
)
_ENCRYPTED = re.compile(r"""\baes_(?:encrypt|decrypt)\s*\([^()']*,\s*(?P<quote>['"])(?P<secret>[^'"\n]+)(?P=quote)""", re.IGNORECASE)
_JINJA = re.compile(r"\{[{%].*?[%}]\}", re.DOTALL)
_PLACEHOLDER = re.compile(
    r"<.*>|\$\{.*\}|\{\{.*|\*+|x{3,}|\.{3}|your[-_ ].*|none|null|true|false|(?:env|vault|secret|arn|file)[:/].*", re.IGNORECASE
)
_HELP = "Remove it from the file and from its history, replace the secret, and read it from the environment: {{ env_var('NAME') }}."


def check(file: SourceFile) -> Iterator[Found]:
    yield from (Found(message=f"This looks like {what}", span=span) for what, span in secrets(file))


def secrets(file: SourceFile) -> tuple[tuple[str, Span], ...]:
    """The secrets in a file, and what they are; each place once, in the order of the file."""
    is_yaml = PurePosixPath(file.path).suffix in (".yml", ".yaml")
    found: dict[int, tuple[str, Span]] = {}
    for what, span in (*_formats(file), *(_in_yaml(file) if is_yaml else _in_sql(file)), *_defaults(file)):
        if not any(s.start < span.end and span.start < s.end for _, s in found.values()):
            found[span.start] = what, span
    return tuple(found[start] for start in sorted(found))


def _formats(file: SourceFile) -> Iterator[tuple[str, Span]]:
    for what, pattern in _FORMATS:
        for match in pattern.finditer(file.text):
            part = "secret" if "secret" in pattern.groupindex else 0
            if not _PLACEHOLDER.fullmatch(match[part]):
                yield what, Span(file, match.start(part), match.end(part))


def _in_yaml(file: SourceFile) -> Iterator[tuple[str, Span]]:
    if not re.search(_WORDS, file.text, re.IGNORECASE):
        return
    tree, _ = read_yaml(file)
    waiting: list[Node] = [tree] if tree is not None else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ListNode):
            waiting += node.items
        elif isinstance(node, MapNode):
            for entry in node.entries:
                if isinstance(entry.node, ScalarNode) and is_secret_name(entry.key) and _is_secret(entry.node.value):
                    yield f"the value of '{entry.key}'", entry.node.span
                else:
                    waiting.append(entry.node)


def is_secret_name(name: str) -> bool:
    return bool(_NAME.match(name) or _AZURE.match(name))


def _is_secret(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return False
    text = str(value).strip()
    return bool(text) and "{{" not in text and not _PLACEHOLDER.fullmatch(text)


def _in_sql(file: SourceFile) -> Iterator[tuple[str, Span]]:
    """In templates and in named arguments. A comparison (`WHERE token = 'a'`) is about a column."""
    for jinja in _JINJA.finditer(file.text):
        yield from _assigned(file, jinja.start(), jinja.end(), "=")
    yield from _assigned(file, 0, len(file.text), "=>")
    for match in _ENCRYPTED.finditer(file.text):
        if _is_secret(match["secret"]):
            yield "an encryption key", Span(file, match.start("secret"), match.end("secret"))


def _assigned(file: SourceFile, start: int, end: int, sign: str) -> Iterator[tuple[str, Span]]:
    for match in _ASSIGNED.finditer(file.text, start, end):
        between = file.text[match.end("name") : match.start("quote")]
        if between.strip("\"'` \t\n") == sign and _is_secret(match["secret"]):
            yield f"the value of '{match['name']}'", Span(file, match.start("secret"), match.end("secret"))


def _defaults(file: SourceFile) -> Iterator[tuple[str, Span]]:
    for match in _ENV_DEFAULT.finditer(file.text):
        if _is_secret(match["secret"]):
            yield "the default of a secret", Span(file, match.start("secret"), match.end("secret"))


_PROJECT = """name: shop
targets:
  dev:
    catalog: {{name: lake, type: rest, uri: "https://catalog.example.com", token: {token}}}
"""

RULE = Rule(
    code="secret-in-file",
    level="error",
    title="A file of the project contains a password, token or key.",
    why=(
        "Checks mvbuild.yml and the YAML and SQL of models, tests and macros for the formats of well-known keys and tokens, for "
        "passwords in URLs, and for values of keys whose names suggest a secret. Findings are printed with the secret masked."
    ),
    help=_HELP,
    check_file=check,
    wrong={"mvbuild.yml": _PROJECT.format(token="correct-horse-battery")},
    right={"mvbuild.yml": _PROJECT.format(token="\"{{ env_var('TOKEN', '') }}\"")},
)
