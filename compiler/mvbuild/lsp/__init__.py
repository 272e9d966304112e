"""an editor's buffers and questions -> diagnostics, definitions, hovers and completions, by the Language Server Protocol.

In: requests of an editor, with texts that may not be saved. Out: answers of the protocol (docs/editors.md).

Read first: `server.py` (the only module that knows pygls), `projects.py` (what is known of each project), `check.py` (compiles a
project).

Unsaved texts are compiled in a directory of links (`mirror.py`), so that no package below knows of editors. `sql_text.py` and
`yaml_place.py` read by patterns what is being typed. `freshness.py` asks the catalog in a process of its own.
"""
