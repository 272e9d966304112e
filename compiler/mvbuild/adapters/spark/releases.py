"""the installed PySpark -> the Iceberg and Delta that go with it: the versions of Spark that mvbuild was tried with."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from mvbuild.dataclass import dataclass
from mvbuild.ports.engine import EngineError


@dataclass(frozen=True, slots=True)
class Artifact:
    """A Maven artifact."""

    group: str
    name: str
    version: str

    @property
    def coordinate(self) -> str:
        return f"{self.group}:{self.name}:{self.version}"

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}.jar"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A minor version of Spark, such as 4.1, with what was tried together with it."""

    spark: str
    scala: str
    iceberg: str
    delta: tuple[Artifact, ...]
    copies_by_position: bool = True
    """Whether DELETE works with a condition on `_file` and `_pos` where deletes are copy-on-write. Before Spark 4.1, a metadata column in
    the condition makes all of them columns of the rows to write."""

    @property
    def runtime(self) -> Artifact:
        return self._of_iceberg(f"iceberg-spark-runtime-{self.spark}_{self.scala}")

    @property
    def aws(self) -> Artifact:
        return self._of_iceberg("iceberg-aws-bundle")

    @property
    def gcp(self) -> Artifact:
        return self._of_iceberg("iceberg-gcp-bundle")

    @property
    def azure(self) -> Artifact:
        return self._of_iceberg("iceberg-azure-bundle")

    def _of_iceberg(self, name: str) -> Artifact:
        return Artifact("org.apache.iceberg", name, self.iceberg)


def _delta(name: str, version: str) -> tuple[Artifact, ...]:
    return Artifact("io.delta", name, version), Artifact("io.delta", "delta-storage", version)


# Each is the newest Iceberg that has a runtime for this Spark. Delta 4.3 and later also need the Unity Catalog client.
RELEASES = {
    release.spark: release
    for release in (
        Release(spark="3.5", scala="2.12", iceberg="1.12.0", delta=_delta("delta-spark_2.12", "3.3.2"), copies_by_position=False),
        Release(spark="4.0", scala="2.13", iceberg="1.11.0", delta=_delta("delta-spark_2.13", "4.0.0"), copies_by_position=False),
        Release(spark="4.1", scala="2.13", iceberg="1.12.0", delta=_delta("delta-spark_4.1_2.13", "4.1.0")),
    )
}

_INSTALL = (
    "Install it: pip install 'pyspark>=3.5,<4.2'. The package mvbuild includes it; mvbuild-core, for hooks, CI and editors, does not."
)
_MINOR = re.compile(r"\d+\.\d+")
_VERSION = re.compile(r"""^__version__[^=\n]*=\s*["']([^"']+)""", re.MULTILINE)


def minor_of(version: str) -> str:
    """`3.5.2-amzn-1` is a Spark 3.5."""
    found = _MINOR.match(version)
    return found[0] if found else version


def release_of(version: str) -> Release:
    """What goes with a version of Spark. Raises EngineError for one that mvbuild was not tried with."""
    release = RELEASES.get(minor_of(version))
    if release is None:
        raise EngineError(
            "spark-start",
            f"This is Spark {version}. mvbuild supports Spark {_listed()}.",
            help="Use one of these versions, for example: pip install 'pyspark==4.1.*'.",
        )
    return release


def installed_release() -> Release:
    """The release of the installed PySpark. Raises EngineError if there is none, or not one of ours."""
    version = installed_version()
    if not version:
        raise EngineError("missing-package", "PySpark is not installed, and this command needs it.", help=_INSTALL)
    return release_of(version)


def installed_version() -> str:
    """The version of the installed PySpark, without importing it; empty if there is none."""
    try:
        spec = find_spec("pyspark")
        if spec is None or spec.origin is None:
            return ""
        found = _VERSION.search((Path(spec.origin).parent / "version.py").read_text(encoding="utf-8"))
    except (ImportError, ValueError, OSError):
        return ""
    return found[1] if found else ""


def _listed() -> str:
    *first, last = RELEASES
    return f"{', '.join(first)} and {last}"
