"""names + tags of an earlier lookup -> Lookup of a remote catalog, which returns the metadata with the name.

A REST catalog may give a table an ETag, and later report that the table has not changed since (`loadTable` in the REST specification). Its
metadata is then neither sent nor parsed. Views have no ETag there. Their tag says that the name is that of a view, which saves a request.
"""

from __future__ import annotations

import json
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg.files import is_unique
from mvbuild.adapters.iceberg.remote_commits import in_parallel
from mvbuild.dataclass import dataclass
from mvbuild.ports.states import ViewState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mvbuild.adapters.iceberg.files import Files
    from mvbuild.names import TableIdentifier
    from mvbuild.ports.states import State

_OF_CATALOG = ("uri", "warehouse", "prefix")
"""The properties that say which catalog it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """What a REST catalog said of a name."""

    origin: str
    """The catalog: two may give the same ETag to different tables."""
    location: str
    """The metadata file."""
    etag: str
    """Empty for a view."""

    @property
    def text(self) -> str:
        return json.dumps([self.origin, self.location, self.etag])


def tag_of(text: str | None, origin: str) -> Tag | None:
    """The tag of a text, if this catalog gave it."""
    kept, location, etag = json.loads(text) if text else ("", "", "")
    return Tag(origin=origin, location=location, etag=etag) if kept == origin else None


def origin_of(properties: Mapping[str, str]) -> str:
    return blake2b(json.dumps([properties.get(name) for name in _OF_CATALOG]).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A name that exists. Without a state, it has not changed since the catalog returned the tag."""

    state: State | None
    tag: Tag | None

    @property
    def location(self) -> str:
        if self.state is not None:
            return self.state.metadata_location
        assert self.tag is not None
        return self.tag.location


@dataclass(frozen=True, kw_only=True)
class RemoteLookup:
    seen: Mapping[TableIdentifier, Seen]
    files: Files
    read: Callable[[TableIdentifier, str], State]
    """The state of a table when its metadata was at a location."""

    @cached_property
    def stamps(self) -> Mapping[TableIdentifier, str | None]:
        places = ((identifier, one.location) for identifier, one in self.seen.items())
        return {identifier: place if is_unique(place) else None for identifier, place in places}

    @cached_property
    def views(self) -> frozenset[TableIdentifier]:
        return frozenset(identifier for identifier, one in self.seen.items() if isinstance(one.state, ViewState))

    @cached_property
    def tags(self) -> Mapping[str, str]:
        return {str(identifier): one.tag.text for identifier, one in self.seen.items() if one.tag is not None}

    def load(self, identifiers: Iterable[TableIdentifier]) -> Mapping[TableIdentifier, State]:
        def loaded(identifier: TableIdentifier) -> State:
            one = self.seen[identifier]
            return one.state if one.state is not None else self.read(identifier, one.location)

        wanted = [identifier for identifier in identifiers if identifier in self.seen]
        return dict(zip(wanted, in_parallel(loaded, wanted), strict=True))

    def stamp(self, location: str) -> str | None:
        return self.files.stamp(location)
