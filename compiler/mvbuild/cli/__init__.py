"""argv -> api calls -> text and exit codes.

In: the arguments of a command. Out: data on stdout, everything else on stderr, and an exit code. Nothing else prints, reads options or
imports click.

Read first: `main.py` (imports only the module of the chosen command), `options.py` (options that commands share), `run.py` (a typical
command). There is one module per command.
"""
