"""arguments -> exit code: `python -m mvbuild` is the command `mvbuild`."""

from __future__ import annotations

from mvbuild.cli.main import main

if __name__ == "__main__":
    main()
