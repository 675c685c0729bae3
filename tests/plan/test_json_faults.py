"""Wrong requests for machines: one object on the standard output, with the words that people read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from discreet.plan.run import run


@pytest.mark.parametrize("content", [None, b"no archive", b""])
def test_verify_of_what_is_no_bundle(tmp_path: Path, command, content: bytes | None) -> None:
    bundle = tmp_path / "bundle.zip"
    if content is not None:
        bundle.write_bytes(content)
    code, out, err = command("verify", bundle, "--json")
    told = json.loads(out)
    assert code == 2
    assert (told["holds"], told["faults"][0]["line"]) == (False, None)
    assert told["faults"][0]["message"] in err
    assert command("verify", bundle)[1] == ""


def test_verify_with_a_ledger_that_cannot_be_read(plan: Path, command) -> None:
    run(plan)
    torn = plan.parent / "torn.db"
    torn.write_bytes((plan.parent / "ledger.db").read_bytes()[:3000])
    code, out, _ = command("verify", plan.parent / "out" / "bundle.zip", "--ledger", torn, "--json")
    assert code != 0
    told = json.loads(out)
    assert not told["holds"]
    assert [fault["about"] for fault in told["faults"]] == ["ledger"], "the bundle is not to blame"


@pytest.mark.parametrize("verb", ["check", "run"])
@pytest.mark.parametrize("kind", ["folder", "loop", "missing"])
def test_a_plan_that_is_no_file_is_not_its_own_likeness(tmp_path: Path, command, verb: str, kind: str) -> None:
    plan = tmp_path / "plan.toml"
    if kind == "folder":
        plan.mkdir()
    elif kind == "loop":
        plan.symlink_to(plan)
    (tmp_path / "plans.toml").write_text("")
    code, out, err = command(verb, plan, "--json")
    told = json.loads(out)
    assert code == 2
    assert told["can_run"] is False
    assert "Did you mean 'plans.toml'?" in told["faults"][0]["message"]
    assert told["faults"][0]["message"] in err


@pytest.mark.parametrize("name", ["a" * 300, f"{'b' * 300}/plan.toml"])
def test_a_plan_whose_name_no_system_takes(tmp_path: Path, command, name: str) -> None:
    code, _, err = command("check", tmp_path / name)
    assert code == 2
    assert "cannot be read: File name too long" in err
