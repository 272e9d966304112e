"""files on disk -> LoadedProject.

In: the project directory, target, variables and environment. Out: `LoadedProject`: every file read, every YAML key checked, no template
rendered and no SQL parsed.

Read first: `load.py` (the stage), `loaded.py` (its types), `keys.py` (the table of every key, from which the JSON Schemas are generated).

Work of earlier runs is not repeated: `target/cache.sqlite` has what they made of the same files (docs/decisions/010). `workers.py` gives
many new files to several processes, a few at a time: YAML, then SQL, then definitions, whose fingerprints and files the processes make
while the manifest is written.
"""
