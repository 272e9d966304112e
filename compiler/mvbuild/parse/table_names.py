"""LoadedProject -> the results of ref() and source(): the placeholder of a model, seed or source table, outside of a template."""

from __future__ import annotations

from mvbuild.parse import placeholder
from mvbuild.project.loaded import LoadedProject


class TableNames:
    """Names are compared without case, and written as the project has them."""

    def __init__(self, project: LoadedProject) -> None:
        names = (*(model.name for model in project.models if model.version is None), *(seed.name for seed in project.seeds))
        self.project = project.name
        self.models = {name.lower(): name for name in names}
        """What ref() without a version means: for a model with versions, the latest one."""
        self.versions: dict[str, dict[str, str]] = {}
        """Model -> version -> its own name."""
        for model in project.models:
            version = model.version
            if version is not None:
                self.versions.setdefault(version.model.lower(), {})[str(version.v)] = model.name
                if version.is_latest:
                    self.models[version.model.lower()] = model.name
        self.known = (*names, *dict.fromkeys(model.version.model for model in project.models if model.version is not None))
        """What may be written in ref()."""
        self.sources = {(s.source.lower(), s.name.lower()): (s.source, s.name) for s in project.sources}

    def resolve(self, kind: str, names: tuple[str, ...]) -> str | None:
        """The result of a call of ref() or source(); None for an invalid call."""
        if kind in ("ref", "ref_version"):
            *project, name = names[:-1] if kind == "ref_version" else names
            known = self.versions.get(name.lower(), {}).get(names[-1]) if kind == "ref_version" else self.models.get(name.lower())
            if known is None or (project and project[0].lower() != self.project.lower()):
                return None
            return placeholder.for_ref(known)
        found = self.sources.get((names[0].lower(), names[-1].lower())) if len(names) == 2 else None
        return placeholder.for_source(*found) if found else None
