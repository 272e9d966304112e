"""the tables of keys -> JSON Schemas of the YAML files that users write.

In: the tables of keys and settings in `project`. Out: a JSON Schema for each kind of YAML file; docs/schemas has copies.

Read first: `files.py` (one schema per kind of file), `blocks.py` (a table of keys as a schema), `settings.py` (the value of a setting as
a schema).
"""
