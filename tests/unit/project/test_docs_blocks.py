"""`{% docs %}` blocks and doc() in descriptions."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.api.compilation import compile
from mvbuild.artifacts.manifest import manifest
from unit.project.project_on_disk import errors, load, places, write

MODEL = "SELECT id FROM raw.t\n"
BLOCKS = "# Words\n\n{% docs order_id %}\nThe number of an *order*.\n{% enddocs %}\n\n{% docs __overview__ %}Welcome{% enddocs %}\n"
YAML = """models:
  - name: orders
    description: "About {{ doc('order_id') }}"
    columns:
      - {name: id, description: "{{ doc('shop', 'order_id') }}"}
sources:
  - name: raw
    tables:
      - {name: t, description: "{{ doc(\\"order_id\\") }}", columns: [{name: id, description: "plain {{ text }}"}]}
exposures:
  - {name: board, type: dashboard, owner: {name: Ada}, depends_on: [ref('orders')], description: "{{ doc('order_id') }}"}
"""
FILES = {"models/orders.sql": MODEL, "models/words.md": BLOCKS, "models/orders.yml": YAML}
TEXT = "The number of an *order*."


def test_descriptions_have_the_text_of_their_blocks(tmp_path: Path) -> None:
    project = load(tmp_path, FILES)
    (model,), (source,) = project.models, project.sources
    assert model.properties.description == f"About {TEXT}"
    assert [column.description for column in model.properties.columns] == [TEXT]
    assert source.properties.description == TEXT
    assert [column.description for column in source.properties.columns] == ["plain {{ text }}"]


def test_the_manifest_has_the_blocks(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    found = manifest(compile(tmp_path), version="1", generated_at="", invocation_id="")
    assert {name: entry["block_contents"] for name, entry in found["docs"].items()} == {
        "doc.dbt.__overview__": "# shop\n\nMaterialized views built by mvbuild.",
        "doc.shop.order_id": TEXT,
        "doc.shop.__overview__": "Welcome",
    }
    assert found["exposures"]["exposure.shop.board"]["description"] == TEXT


def test_an_edit_of_a_block_is_seen_by_the_next_command(tmp_path: Path) -> None:
    """The outline of a compiled project depends on its Markdown files, too."""
    write(tmp_path, FILES)
    compile(tmp_path)
    write(tmp_path, {**FILES, "models/words.md": "{% docs order_id %}Another{% enddocs %}"})
    assert compile(tmp_path).model("model.shop.orders").model.properties.description == "About Another"


@pytest.mark.parametrize("folder", ["words", "docs/deep"])
def test_docs_paths_are_further_folders(tmp_path: Path, folder: str) -> None:
    files = {**FILES, f"{folder}/more.md": BLOCKS, "mvbuild.yml": f"name: shop\ndocs-paths: [{folder.partition('/')[0]}]\n"}
    del files["models/words.md"]
    assert load(tmp_path, files).docs["order_id"].span.file.path == f"{folder}/more.md"


def test_blocks_that_are_wrong(tmp_path: Path) -> None:
    wrong = {
        **FILES,
        "models/words.md": "{% docs order_id %}a{% enddocs %}{% docs order_id %}b{% enddocs %}{% docs open %}{% docs last %}c{% enddocs %}",
        "models/more.yml": "models:\n  - {name: orders2, description: \"{{ doc('order_ids') }} {{ doc('other', 'order_id') }}\"}\n",
        "models/orders2.sql": MODEL,
    }
    found = errors(tmp_path, wrong)
    assert sorted(places(found)) == sorted(
        [
            ("duplicate-name", "models/words.md:1:42"),
            ("template-syntax", "models/words.md:1:75"),
            ("undefined-name", "models/more.yml:2:12"),
            ("undefined-name", "models/more.yml:2:12"),
        ]
    ), found
    assert [d.help for d in found if d.code == "undefined-name"] == [
        "Did you mean 'order_id'?",
        "Docs blocks of packages are not read: write the block into this project, and doc('order_id').",
    ]
