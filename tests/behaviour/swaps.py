"""World with an MV -> the outcome of eight processes that swap its pointer at once, and of one that reads in the meantime."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from behaviour.mvs import created, embedded_commit, loaded
from behaviour.world import embedded_properties, warehouse_properties
from mvbuild.adapters import open_catalog
from mvbuild.ports.catalog import CatalogError
from mvbuild.ports.states import ViewState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from behaviour.world import World

SWAPS = 1000
WRITERS = 8
_SETTINGS = {
    "write.metadata.previous-versions-max": "1000000",
    "commit.retry.num-retries": "10000",
    "commit.retry.min-wait-ms": "5",
    "commit.retry.max-wait-ms": "60",
}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    uuid: str
    uuids: set[str]
    reads: int
    counted: int
    errors: list[str]


def race(world: World, root: Path, kind: str, *, swaps: int) -> Outcome:
    """`kind` is that of a catalog below `root`, or the properties of any catalog as JSON."""
    world.catalog.ensure_namespace(("mart",))
    view = created(world, properties=_SETTINGS)
    assert view.storage
    folders = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "compiler")]
    code = f"import sys; sys.path[:0] = {folders!r}; from behaviour.swaps import main; main(*sys.argv[1:])"

    def start(*given: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", code, kind, str(root), *map(str, given)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    reader = start("read", 0)
    writers = [start(f"w{n}", swaps // WRITERS) for n in range(WRITERS)]
    errors = [out for process in writers if (out := process.communicate(timeout=600)[0])]
    told = json.loads(reader.communicate("stop\n", timeout=60)[0])
    _, storage = loaded(world)
    counted = _counted(storage.properties)
    return Outcome(uuid=view.storage.uuid, uuids={*told["uuids"]}, reads=told["reads"], counted=counted, errors=errors + told["errors"])


def chain(world: World) -> list[str]:
    """The MV metadata files, oldest first."""
    view, storage = loaded(world)
    assert storage.mv
    current = view.properties.get("materialized-view.metadata-location", view.metadata_location)
    return [*(entry["metadata-file"] for entry in storage.mv.raw["metadata-log"]), current]


def _counted(properties: Mapping[str, str]) -> int:
    """Each writer's own counter, w0 to w7, added up."""
    return sum(int(value) for key, value in properties.items() if key[:1] == "w" and key[1:].isdigit())


def main(kind: str, root: str, role: str, count: str) -> None:
    if kind.startswith("{"):
        properties = json.loads(kind)
    else:
        properties = embedded_properties(Path(root)) if kind == "sqlite" else warehouse_properties(Path(root))
    catalog: Any = open_catalog("lake", properties, embedded=kind == "sqlite")
    if role == "read":
        _read(catalog)
    else:
        _write(catalog, role, int(count))


def _write(catalog: Any, role: str, count: int) -> None:
    from behaviour.mvs import MV

    storage = catalog.load([MV])[MV].storage
    for number in range(count):
        catalog.commit([embedded_commit(storage, set_properties={role: str(number + 1)})])


def _read(catalog: Any) -> None:
    """Reads until the other side has something to say."""
    import select

    from behaviour.mvs import MV

    uuids, errors, reads, last = set(), [], 0, 0
    while not select.select([sys.stdin], [], [], 0.02)[0]:
        try:
            view = catalog.load([MV])[MV]
            if not isinstance(view, ViewState) or view.storage is None:
                errors.append(str(view))
                continue
            total = _counted(view.storage.properties)
            if total < last:
                errors.append(f"went back from {last} to {total}")
            last, reads = total, reads + 1
            uuids.add(view.storage.uuid)
        except (CatalogError, KeyError) as error:
            errors.append(repr(error))
    print(json.dumps({"uuids": sorted(uuids), "errors": errors[:5], "reads": reads}))
