"""Question -> StrategyChoice: the cheapest way to refresh an MV, with its auxiliary views; a full refresh where mvbuild itself fails."""

from __future__ import annotations

from mvbuild.diagnostics import ProjectError
from mvbuild.incremental.auxiliary_views import with_auxiliary_views
from mvbuild.incremental.choice import StrategyChoice
from mvbuild.incremental.choose import Question, choose, in_full
from mvbuild.incremental.reasons import Refused
from mvbuild.ports.catalog import CatalogError


def strategy_for(question: Question) -> StrategyChoice:
    """An error that mvbuild does not expect concerns this MV alone, and a full refresh does not need what failed."""
    try:
        return with_auxiliary_views(question, choose(question))
    except (CatalogError, ProjectError):
        raise
    except Exception as exc:  # noqa: BLE001
        return in_full(Refused("internal", f"mvbuild failed to compare the strategies ({type(exc).__name__}: {exc})"))
