"""library exception -> SourceError that names the table and shows no secret."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg.failures import Translator, is_unreachable
from mvbuild.ports.catalog import CatalogError
from mvbuild.ports.sources import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mvbuild.ports.sources import SourceLocation

_OWN_BUGS = (AssertionError, NameError)


@contextmanager
def source_errors(location: SourceLocation) -> Iterator[None]:
    """Every exception of a library leaves this block as a SourceError."""
    # Storage options are written with underscores and in upper case, the secrets of catalogs with hyphens.
    secrets = Translator("", {key.replace("_", "-"): value for key, value in location.options.items()})
    try:
        yield
    except (SourceError, *_OWN_BUGS):
        raise
    except Exception as exc:  # noqa: BLE001  libraries raise what they like
        lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
        reason = lines[0] if lines else type(exc).__name__
        message = secrets.masked(reason if isinstance(exc, CatalogError) else f"{location.identifier} cannot be read: {reason}")
        raise SourceError(message, location.identifier, unreachable=is_unreachable(exc)) from None
