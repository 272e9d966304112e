"""catalog settings -> Catalog: the world behind the ports. Each loader imports its adapter only when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mvbuild.ports.catalog import Catalog


def open_catalog(name: str, properties: Mapping[str, str], *, embedded: bool) -> Catalog:
    """The catalog that PyIceberg knows by these properties. An embedded one belongs to the project and is created on first use."""
    from mvbuild.adapters.iceberg import open_catalog as open_iceberg

    return open_iceberg(name, properties, create=embedded)
