"""Graph, columns, the state of the catalog -> a folder of web pages that opens from disk.

In: `Content`. Out: `index.html`, `assets/` (the code of the pages, copied as it is) and `data/` (a script for the project and one for each
node, so that a page loads only what it shows). A page on disk may load scripts but not read files, so the data is in scripts too.

Read first: `model.py`, `index.py` (the script of the project) and `pages.py` (the script of a node). The pages start in
`assets/app.js`.
"""
