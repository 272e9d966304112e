"""ParsedModels -> Graph.

In: `LoadedProject` and `ParsedProject`. Out: `Graph`: nodes with their names in the catalog, and an edge for every table that a query
reads.

Read first: `model.py` (the types), `resolve.py` (tables to edges: a model, a seed, a declared source or a table of the catalog),
`definition.py` (the SQL of a view: full names, ephemeral models inlined).

Wrong SQL stops only its model and the models that read it (`broken.py`), because Spark may know a syntax that mvbuild does not.
For a project that was compiled before, `graph_cache.py` restores names and edges, and reads a model when something asks for it
(docs/decisions/012).
"""
