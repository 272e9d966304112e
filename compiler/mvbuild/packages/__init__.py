"""packages.yml -> the packages in `dbt_packages`, and packages.lock, which says exactly what they are.

In: what the project declares: folders, git repositories, archives. Out: the files of each package that mvbuild reads, and their hash.

Read first: `install.py` (all steps), `fetch.py` (one package into a folder), `archive.py` (one archive). The module
`packages` of `project` reads what is installed.
"""
