"""LoadedProject -> the results of ref() and source(): the placeholder of a model, seed or source table, outside of a template."""

from __future__ import annotations

from mvbuild.parse import placeholder
from mvbuild.project.loaded import LoadedProject


class TableNames:
    """Names are compared without case, and written as the project has them."""

    def __init__(self, project: LoadedProject) -> None:
        names = (*(model.name for model in project.models), *(seed.name for seed in project.seeds))
        self.project = project.name
        self.models = {name.lower(): name for name in names}
        self.sources = {(s.source.lower(), s.name.lower()): (s.source, s.name) for s in project.sources}

    def resolve(self, kind: str, names: tuple[str, ...]) -> str | None:
        """The result of a call of ref() or source(); None for an invalid call."""
        if kind == "ref":
            *project, name = names
            known = self.models.get(name.lower())
            if known is None or (project and project[0].lower() != self.project.lower()):
                return None
            return placeholder.for_ref(known)
        found = self.sources.get((names[0].lower(), names[-1].lower())) if len(names) == 2 else None
        return placeholder.for_source(*found) if found else None
