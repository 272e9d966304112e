"""finding -> Diagnostic: what is wrong, where the user wrote it, and what to do.

In: a code, a message and a span. Out: `Diagnostic`, rendered as text or JSON; `ProjectError` carries several.

Read first: `diagnostic.py` (the types), `codes.py` (the table of codes; docs/errors.md is generated from it), `render.py`.
"""

from __future__ import annotations

from mvbuild.diagnostics.codes import CODES as CODES
from mvbuild.diagnostics.codes import Code as Code
from mvbuild.diagnostics.diagnostic import Diagnostic as Diagnostic
from mvbuild.diagnostics.diagnostic import Note as Note
from mvbuild.diagnostics.diagnostic import ProjectError as ProjectError
from mvbuild.diagnostics.diagnostic import did_you_mean as did_you_mean
from mvbuild.diagnostics.diagnostic import error as error
from mvbuild.diagnostics.diagnostic import warning as warning
