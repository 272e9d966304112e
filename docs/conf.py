"""The pages of docs/ -> a site, by Sphinx: `.venv/bin/python -m sphinx -W -b html docs target/docs`."""

from __future__ import annotations

project = "mvbuild"
project_copyright = "the mvbuild authors"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "mvbuild"
html_copy_source = False
exclude_patterns = ["schemas/*", "examples/*"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
nitpicky = True
# Models are templates, which the highlighter of SQL does not know; some pages start a list of records at a third level.
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
