"""an editor's buffers and requests -> diagnostics, hovers, references, completions and edits, by the Language Server Protocol.

In: requests of an editor, with texts that may not be saved. Out: answers of the protocol (docs/editors.md).

Read first: `server.py` (the only module that knows pygls), `projects.py` (what is known of each project), `check.py` (compiles a project).

Unsaved texts are compiled in a directory of links (`mirror.py`), so that no package below knows about editors. `sql_text.py` and
`yaml_place.py` use patterns to read what is being typed. `freshness.py` reads the catalog in a separate process.
"""
