"""SQL text -> hash of its tokens: the same for every formatting of one query, different for different queries.

Case counts in every word that may be a name. Spark ignores the case of names, but a name can become data: a key of a map, a field of JSON,
a value of UNPIVOT. Only Spark can decide; `folded` finds the queries for which it is worth asking Spark.
"""

from __future__ import annotations

from hashlib import sha256


def fingerprint(sql: str) -> str:
    r"""SHA-256 of the tokens. Comments, spaces, and the case of keywords and functions do not count.

    >>> fingerprint("SELECT a FROM t") == fingerprint("select a\nfrom t -- all rows")
    True
    >>> fingerprint("SELECT a FROM t") == fingerprint("SELECT A FROM t")
    False
    """
    # Imported here because a run that finds nothing to do needs no SQL parser.
    from mvbuild.parse.token_words import strict_words

    return _hash("\x1f".join(strict_words(sql)))


def folded(sql: str) -> str:
    """The same, but the case of unquoted names does not count either, except for output columns and possible fields."""
    from mvbuild.parse.token_words import folded_words

    return _hash("\x1f".join(folded_words(sql)))


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
