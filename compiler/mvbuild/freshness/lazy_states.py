"""names, of which some were read -> their states; the first question about another one reads all others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from mvbuild.names import TableIdentifier
from mvbuild.ports.states import State


class LazyStates(Mapping[TableIdentifier, State]):
    """All states of an observation. A run that finds nothing to do asks for few of them."""

    def __init__(
        self,
        known: Mapping[TableIdentifier, State],
        unread: frozenset[TableIdentifier],
        read: Callable[[], Mapping[TableIdentifier, State]],
    ) -> None:
        """`unread`: the names that `read` may return."""
        self._known, self._unread, self._read = known, unread, read

    def __getitem__(self, identifier: TableIdentifier) -> State:
        found = self._known.get(identifier)
        if found is not None:
            return found
        if identifier in self._unread:
            return self._all()[identifier]
        raise KeyError(identifier)

    def __iter__(self) -> Iterator[TableIdentifier]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __contains__(self, identifier: object) -> bool:
        return identifier in self._known or (identifier in self._unread and identifier in self._all())

    def updated(self, newer: Mapping[TableIdentifier, State], gone: Collection[TableIdentifier] = ()) -> LazyStates:
        """With newer states of some names, and without those that no longer exist."""
        known = {name: state for name, state in {**self._known, **newer}.items() if name not in gone}
        return LazyStates(known, self._unread - newer.keys() - set(gone), self._read)

    def _all(self) -> Mapping[TableIdentifier, State]:
        if self._unread:
            found = self._read()
            self._known = {**{name: state for name, state in found.items() if name in self._unread}, **self._known}
            self._unread = frozenset()
        return self._known
