"""files and pointers of a catalog -> the same, as an Iceberg branch sees them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg.branches import put_back, seen
from mvbuild.adapters.iceberg.metadata import parse, serialize
from mvbuild.adapters.iceberg.publish import MV_FILE
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import CatalogError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mvbuild.adapters.iceberg.files import Files
    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.adapters.iceberg.pointers import Key, Kind, Pointers, Swap

NAMESPACE = "mvbuild_branches"
"""For views that only a branch has: none of their versions may be current under the view's own name."""
_METADATA = (".metadata.json", ".metadata.json.gz")


class BranchFiles:
    """The `Files` of one branch. Metadata files are translated; all others are unchanged."""

    def __init__(self, files: Files, branch: str) -> None:
        self._files = files
        self._branch = branch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def read(self, location: str) -> bytes:
        return self._seen(location, self._files.read(location))

    def read_all(self, locations: list[str]) -> list[bytes | Exception]:
        found = zip(locations, self._files.read_all(locations), strict=True)
        return [content if isinstance(content, Exception) else self._seen(location, content) for location, content in found]

    def write(self, location: str, content: bytes) -> None:
        if location.endswith(MV_FILE):
            raise CatalogError("An MV in the metadata-file format has no branches: its file has only one state.")
        if location.endswith(_METADATA):
            content = serialize(put_back(parse(content, location), self._branch), location)
        self._files.write(location, content)

    def _seen(self, location: str, content: bytes) -> bytes:
        if not location.endswith(_METADATA) or location.endswith(MV_FILE):
            return content
        # The next reader reports what is wrong with the file.
        with suppress(ValueError, LookupError, TypeError, AttributeError, OSError):
            return serialize(seen(parse(content, location), self._branch), location)
        return content


class BranchPointers:
    """The `Pointers` of one branch: a new view gets an internal name."""

    def __init__(self, pointers: Pointers, branch: str) -> None:
        self._pointers = pointers
        self._branch = branch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pointers, name)

    def find(self, keys: Iterable[Key]) -> dict[Key, tuple[str, Kind]]:
        wanted = list(keys)
        found = self._pointers.find(wanted)
        own = {own_key(key, self._branch): key for key in wanted if key not in found}
        return {**found, **{own[at]: one for at, one in self._pointers.find(own).items()}} if own else found

    def views(self) -> list[Key]:
        return [key for key in self._pointers.views() if key[0] != NAMESPACE]

    def swap(self, swaps: Sequence[Swap]) -> bool:
        return self._pointers.swap([self._swap(one) for one in swaps])

    def delete(self, key: Key, location: str) -> bool:
        return self._pointers.delete(key if key in self._pointers.find([key]) else own_key(key, self._branch), location)

    def _swap(self, swap: Swap) -> Swap:
        key = swap.key
        if swap.new is None:
            raise CatalogError(f"{'.'.join(key)} cannot be dropped, renamed or converted on a branch: it is also on `main`.")
        if swap.kind == "VIEW" and key not in self._pointers.find([key]):
            self._pointers.add_namespace(NAMESPACE)
            key = own_key(key, self._branch)
        return replace(swap, key=key, raw=self._put(swap.raw), base=self._put(swap.base))

    def _put(self, raw: Raw | None) -> Raw | None:
        return None if raw is None else put_back(raw, self._branch)


def own_key(key: Key, branch: str) -> Key:
    """The internal name of a view that only the branch has. Hive accepts letters, digits and underscores."""
    return NAMESPACE, f"{prefix(branch)}{_hash('.'.join(key))}"


def own_identifier(identifier: TableIdentifier, branch: str) -> TableIdentifier:
    namespace, name = own_key((".".join(identifier.namespace), identifier.name), branch)
    return TableIdentifier(identifier.catalog, (namespace,), name)


def prefix(branch: str) -> str:
    return f"b{_hash(branch)}_"


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
