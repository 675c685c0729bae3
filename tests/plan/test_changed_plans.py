"""A plan that was changed and run again: what was published before keeps its report and its bundle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.ledger.anchors import ANCHORS
from discreet.plan import bundle as papers
from discreet.plan.run import run
from discreet.review.verdict import verify_bundle

PLACES = '[[release]]\nname = "{}"\nkind = "count"\nby = ["place"]\nepsilon = 1\n\n'


@pytest.fixture
def one(tmp_path: Path, toys: Callable[[Path], Path]) -> Callable[..., Path]:
    """The plan with releases of these names, and nothing else."""
    plan = toys(tmp_path / "toys")
    text = plan.read_text()
    head, output = text[: text.index("[[release]]")], text[text.index("[output]") :]

    def written(*names: str) -> Path:
        plan.write_text(head + "".join(map(PLACES.format, names)) + output)
        return plan

    return written


def names(folder: Path) -> list[str]:
    """Its papers."""
    found = sorted(path.name for path in folder.iterdir() if path.is_file())
    found.remove(ANCHORS)
    return found


def test_an_earlier_bundle_is_kept(one: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = run(one("first")).folder
    before = {path.suffix: path.read_bytes() for path in folder.iterdir() if papers.PAPER.fullmatch(path.name)}

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:  # in the middle of the exchange, and again just after it
        rename = Path.rename
        patched.setattr(Path, "rename", lambda path, to: killed() if path.name == "bundle.zip" else rename(path, to))
        with pytest.raises(KeyboardInterrupt):
            run(one("second"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("discreet.plan.run.write_bundle", killed)
        with pytest.raises(KeyboardInterrupt):
            run(one("second"))
    run(one("second"))
    kept = [name for name in names(folder) if papers.PAPER.fullmatch(name) and "-" in name]
    assert len(kept) == 2
    assert {Path(name).suffix: (folder / name).read_bytes() for name in kept} == before
    assert names(folder) == sorted([*kept, "bundle.zip", "report.html"])
    monkeypatch.setattr("discreet.review.verdict.check_tables", lambda packed, folder: [10**6] * 9)
    for name, release in ((kept[0], "first"), ("bundle.zip", "second")):
        found = verify_bundle(folder / name, ledger=folder.parent / "ledger.db")
        assert not [finding for finding in found if finding.wrong]
        assert {path.partition("/")[0] for path in papers.packed_releases(folder / name)} == {release}


def test_a_bundle_that_grows_takes_the_place_of_the_smaller(one: Callable[..., Path]) -> None:
    folder = run(one("first")).folder
    run(one("first", "second"))
    assert names(folder) == ["bundle.zip", "report.html"]
    run(one("second", "first"))
    assert names(folder) == ["bundle.zip", "report.html"]
    run(one("second"))
    assert len(names(folder)) == 4
    (folder / "bundle.zip").write_bytes(b"no bundle")
    run(one("second"))
    assert len(names(folder)) == 4


def test_a_report_without_a_bundle_is_kept_too(one: Callable[..., Path]) -> None:
    """Where no bundle was ever made, and where an older one tells of less than the report."""

    def without(*names: str) -> Path:
        plan = one(*names)
        plan.write_text(plan.read_text().replace("[output]", "[output]\nbundle = false"))
        return plan

    folder = run(without("first")).folder
    first = (folder / "report.html").read_bytes()
    run(without("first"))
    assert names(folder) == ["report.html"], "the same releases have one report"
    run(without("second"))
    kept = next(name for name in names(folder) if "-" in name)
    assert names(folder) == [kept, "report.html"] and (folder / kept).read_bytes() == first
    run(one("second"))
    run(without("second", "third"))
    both = (folder / "report.html").read_bytes()
    run(without("second"))
    assert both in [(folder / name).read_bytes() for name in names(folder) if name.startswith("report-")]
    assert "bundle.zip" in names(folder), "it tells of nothing else"
