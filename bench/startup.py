"""What it takes to begin: `import`, the command's help and the size of the install, beside libraries of the field.

Each is a fresh process, with bytecode that an earlier one has compiled; the best of several in processor seconds. The
install is the one without extras, in an environment of its own.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

from bench import peers
from bench.comparison import Agreement, Comparison, beside
from bench.peers import Missing, Peer

TIMES = 7
BARE = Peer("discreet without extras", (str(Path(__file__).parents[1]),), light=True)
BESIDE = ((peers.OPENDP, "opendp.prelude"), (peers.SKLEARN, "sklearn"), (peers.STATSMODELS, "statsmodels.api"))

STARTING = """
import os, subprocess
def starting(*command):
    "Processor seconds and the peak MiB of a fresh interpreter, the best of some."
    best, mib = float("inf"), 0.0
    for _ in range(TIMES):
        pid = os.fork()
        if pid == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.execv(sys.executable, [sys.executable, *command])
        _, status, used = os.wait4(pid, 0)
        if status:
            raise SystemExit(f"{command} fails")
        best, mib = min(best, used.ru_utime + used.ru_stime), used.ru_maxrss / 1024
    return {"seconds": best, "mib": mib}
""".replace("TIMES", str(TIMES + 1))
IMPORTED = STARTING + "report(**starting('-c', f'import {sys.argv[1]}'))"
ALONE = STARTING + "report(**starting('-c', 'pass'))"
HELP = STARTING + "report(**starting('-m', 'discreet', '--help'))"


def compare(*, quick: bool) -> Comparison:
    """Rows for `import`; the rest are facts."""
    if BARE.installed:  # its parts may stay, ours may have changed
        renewed = [str(BARE.python()), *peers.PIP, "--no-deps", "--force-reinstall", *BARE.packages]
        subprocess.run(renewed, check=True)
    ours = BARE.measure(IMPORTED, "discreet")
    rows = [
        beside(
            "import of the package, processor time",
            peer.name,
            ours,
            lambda peer=peer, module=module: peer.measure(IMPORTED, module) | {"version": version(peer)},
            agree=lambda theirs: Agreement(True, f"{1e3 * theirs['seconds']:.0f} ms, ours {1e3 * ours['seconds']:.0f}"),
            same_work=False,
        )
        for peer, module in BESIDE
    ]
    sizes = {"discreet without extras": size(BARE)} | {peer.name: size(peer) for peer in peers.EVERY if peer.installed}
    facts = {
        "import": ours["seconds"],
        "python": BARE.measure(ALONE)["seconds"],
        "help": peers.ours(HELP)["seconds"],
        "install": sizes,
        "everything": everything(),
    }
    print(f"   {facts}", flush=True)
    return Comparison(rows=tuple(rows), facts=facts)


def size(peer: Peer) -> dict[str, float]:
    """Megabytes of its modules without bytecode, and how many distributions they are."""
    folder = peer.packages_folder
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return {"mb": sum(path.stat().st_size for path in files) / 1e6, "packages": len(list(folder.glob("*.dist-info")))}


def version(peer: Peer) -> str:
    """Of the first package that it is installed from."""
    name = peer.packages[0].partition("[")[0]
    found = [each.version for each in metadata.distributions(path=[str(peer.packages_folder)]) if each.name == name]
    return found[0] if found else ""


def everything() -> dict[str, float]:
    """The environment that this runs in, with every extra and what the tests need."""
    folder = Path(sys.prefix)
    done = subprocess.run(["du", "-s", "--apparent-size", "-B1", folder], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing("du is not there")
    return {
        "mb": int(done.stdout.split()[0]) / 1e6,
        "packages": len(list(folder.glob("lib/*/site-packages/*.dist-info"))),
    }
