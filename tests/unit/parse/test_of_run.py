"""A query with a value of the run is never taken from an earlier run, whatever is kept."""

from __future__ import annotations

from pathlib import Path

from mvbuild.api import compilation
from mvbuild.graph.definition import definition
from unit.worlds import write_project

FILES = {
    "mvbuild.yml": "name: shop\n",
    "macros/run.sql": "{% macro run() %}'{{ invocation_id }}' as run{% endmacro %}\n",
    "models/direct.sql": "select '{{ run_started_at }}' as at\n",
    "models/called.sql": "select {{ run() }}\n",
    "models/above.sql": "select run from {{ ref('called') }}\n",
    "models/steady.sql": "select '{{ project_name }}' as a\n",
}


def test_each_run_has_values_of_its_own(tmp_path: Path) -> None:
    write_project(tmp_path, FILES)
    runs = []
    for _ in range(3):
        graph = compilation.compile(tmp_path)
        runs.append({node.model.name: definition(graph, node).text for node in graph.models})
        assert [d.code for d in graph.warnings] == ["not-needed", "not-needed"]
        compilation.write_artifacts(graph)
    assert len({run["direct"] for run in runs}) == len({run["called"] for run in runs}) == 3
    assert len({run["steady"] for run in runs}) == len({run["above"] for run in runs}) == 1
    compiled = (tmp_path / "target/compiled/shop/models/called.sql").read_text()
    assert graph.project.invocation.id in compiled
    assert graph.project.invocation.id in (tmp_path / "target/manifest.json").read_text()
