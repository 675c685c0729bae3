"""What must be true of a ledger and of the folder beside it after any accident, looked up from rows and bytes.

The programme is the one of `tests/engines`: tables that add up, a table by kinds of workers, a sum, a mixed model and
a posterior summary, of two sources with one ledger. Nothing here asks the code that wrote the files what it meant.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import zipfile
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

from bench.peers import Missing
from discreet.ledger import Ledger
from discreet.ledger.anchors import ANCHORS, AnchorFile

PRICES = {"levels": 2, "sexes": 2, "payroll": 2, "model": 4, "slope": 4}
SPENT = {"jobs": Fraction(6), "panel": Fraction(8)}
PAPERS = ("report.html", "bundle.zip")
DISTURBED = Path(__file__).with_name("disturbed.c")


def faults(folder: Path, prices: Mapping[str, Fraction | int] = PRICES) -> list[str]:
    """Every way in which the ledger and what anybody can see contradict each other; `prices` has every release."""
    out, book = folder / "out", folder / "ledger.db"
    visible = [path for path in out.iterdir() if not path.name.startswith(".")] if out.exists() else []
    if not book.exists():
        return [f"{path.name} is visible without a ledger" for path in visible]
    with Ledger.open(book, read_only=True) as ledger:
        verdict, entries, budgets = ledger.verify(), ledger.entries(), ledger.budgets()
    found = [] if verdict else [f"the chain is broken: {verdict}"]
    charges = [entry for entry in entries if entry.kind == "charge"]
    fixed = {str(entry.release): entry.payload["files"] for entry in entries if entry.kind == "publish"}
    found += [f"{name} is paid {n} times" for name, n in Counter(e.release for e in charges).items() if n > 1]
    paid = {str(entry.release): entry.loss.amounts["epsilon"] for entry in charges}
    for budget in budgets:
        spent = sum((e.loss.amounts["epsilon"] for e in charges if e.dataset == budget.dataset), Fraction(0))
        if spent != budget.spent.amounts["epsilon"] or spent > budget.total.amounts["epsilon"]:
            found.append(f"{budget.dataset} says {budget.spent} of {budget.total}, and its lines add up to {spent}")
    for path in visible:
        if path.name == "report.html":
            whole = path.read_bytes().endswith(b"</html>\n")
            found += [] if whole else ["the report is cut off"]
        elif path.name == "bundle.zip":
            with zipfile.ZipFile(path) as packed:
                found += [f"the bundle is damaged at {name}" for name in [packed.testzip()] if name]
        elif path.name == ANCHORS:
            there = {entry.hash for entry in entries}
            found += [f"the ledger lacks {each}" for each in AnchorFile(path).anchors() if each.hash not in there]
        elif path.name not in prices:
            found.append(f"{path.name} is visible, and nobody asked for it")
        elif paid.get(path.name) != prices[path.name]:
            found.append(f"{path.name} is visible, and {paid.get(path.name)} was paid for it")
        elif hashed(path) != fixed.get(path.name):
            found.append(f"{path.name} is visible, and is not what the ledger fixed")
    drawn = [path for path in out.glob(".staged-*") if any(path.rglob("*.csv"))] if out.exists() else []
    if len(drawn) > 1:
        found.append(f"{len(drawn)} draws lie about that nobody has published")
    found += [f"others may read {path.name}" for path in drawn if path.stat().st_mode & 0o077]
    return found


def hashed(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of a release."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def published(folder: Path) -> dict[str, dict[str, str]]:
    """The files that the ledger has fixed so far."""
    if not (folder / "ledger.db").exists():
        return {}
    with Ledger.open(folder / "ledger.db", read_only=True) as ledger:
        return {str(entry.release): entry.payload["files"] for entry in ledger.entries() if entry.kind == "publish"}


def charged(folder: Path) -> int:
    """How often something was paid."""
    if not (folder / "ledger.db").exists():
        return 0
    with Ledger.open(folder / "ledger.db", read_only=True) as ledger:
        return sum(entry.kind == "charge" for entry in ledger.entries())


def unfinished(folder: Path, before: Mapping[str, Mapping[str, str]]) -> list[str]:
    """What is wrong with a programme that has ended well; `before` was fixed earlier."""
    found = faults(folder)
    now = published(folder)
    found += [f"{name} has changed" for name in before if now.get(name) != before[name]]
    left = sorted(path.name for path in (folder / "out").iterdir())
    if left != sorted([*PRICES, *PAPERS, ANCHORS]):
        found.append(f"the folder has {', '.join(left)}")
    with Ledger.open(folder / "ledger.db", read_only=True) as ledger:
        spent = {budget.dataset: budget.spent.amounts["epsilon"] for budget in ledger.budgets()}
    return found if spent == SPENT else [*found, f"{spent} was spent"]


def copied(folder: Path, to: Path) -> Path:
    """What is on a disk now, where it can be looked at without writing to that disk."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to)
    return to


def disturbed(scratch: Path, *, sync: float = 0.0, clock: Path | None = None) -> dict[str, str]:
    """The environment of a process whose syncs take `sync` seconds longer and whose time of day is set by a file."""
    library = scratch / "disturbed.so"
    if not library.exists():
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise Missing("it needs a C compiler")
        subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, DISTURBED], check=True)
        scratch.chmod(0o755)  # a server of another user loads it too
    found = {"LD_PRELOAD": str(library), "DISTURBED_SYNC": str(round(1e6 * sync))}
    return found | ({"DISTURBED_CLOCK": str(clock)} if clock is not None else {})
