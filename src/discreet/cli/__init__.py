"""The `discreet` command: a thin screen over the package, with no algorithm of its own.

Exit codes: 0 done, 1 the work failed or a claim was refuted, 2 the request was wrong and nothing was done.
Each file beside this one is one command or one group of commands.
"""

from __future__ import annotations

from discreet.cli.app import main

__all__ = ["main"]
