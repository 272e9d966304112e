"""templates and SQL -> ParsedModel.

In: `LoadedProject`. Out: `ParsedProject`: the rendered text of every model, and every table that it reads with its place in the file.

Read first: `file.py` (one file, all steps), `render.py` (Jinja in a sandbox, with a map from every character back to the file), `sql.py`
(the query and its tables).

`ref()` and `source()` leave placeholders, so that all dependencies come from the parsed SQL. Templates that only call `ref`, `source` and
`config` with literals do not need Jinja (`plain_template.py`). `budget.py` and `extent.py` limit what templates and queries may cost
(docs/limits.md). `splice.py` replaces table references at their offsets; the rest of the text stays as the user wrote it.
"""
