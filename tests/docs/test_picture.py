"""The README's picture is what its command draws, readable in light and dark."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CONTRAST = 4.5  # WCAG AA, for text of this size


def drawing() -> Any:
    spec = importlib.util.spec_from_file_location("picture", ROOT / "docs" / "picture.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_is_drawn_by_its_command() -> None:
    picture = drawing()
    assert picture.PICTURE.read_text(encoding="utf-8") == picture.draw(), "`make pages` draws it"
    assert f"](docs/images/{picture.PICTURE.name})" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_colour_can_be_read_in_both_themes() -> None:
    light, dark = drawing().LOOK.split("@media")
    for theme in (light, dark):
        fills = dict(re.findall(r"\.(\w+) { fill: (#\w+) }", theme))
        assert fills.keys() == {"ground", "ink", "soft", "theirs", "ours"}
        ground = fills.pop("ground")
        for name, ink in fills.items():
            assert contrast(ink, ground) >= CONTRAST, (name, theme)


def contrast(a: str, b: str) -> float:
    """The contrast of WCAG 2.2 between two colours."""
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


PICTURES = sorted((ROOT / "docs" / "images").glob("*.svg"))
CLIPPED = """() => {
  const all = document.querySelector('svg').getBoundingClientRect();
  const texts = [...document.querySelectorAll('text')].map(e => [e.textContent, e.getBoundingClientRect()]);
  const out = texts.filter(([, r]) => r.left < all.left - 1 || r.right > all.right + 1 || r.top < all.top - 1
    || r.bottom > all.bottom + 1).map(([t]) => 'outside: ' + t);
  texts.forEach(([t, a], i) => texts.slice(i + 1).forEach(([u, b]) => {
    if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom)
      - Math.max(a.top, b.top) > 4) out.push('overlap: ' + t + ' / ' + u);
  }));
  return out;
}"""


@pytest.mark.walk
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_no_label_is_clipped_or_covered(tmp_path: Path) -> None:
    """In a browser whose typeface is wider than the one with which charts are drawn."""
    from playwright.sync_api import sync_playwright

    bad = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><text y="15">a long label</text></svg>'
    (tmp_path / "bad.svg").write_text(bad)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(offline=True)
        found = {}
        for picture in (*PICTURES, tmp_path / "bad.svg"):
            page.goto(picture.as_uri())
            found[picture.name] = page.evaluate(CLIPPED)
        browser.close()
    assert found.pop("bad.svg") == ["outside: a long label"]
    assert not {name: labels for name, labels in found.items() if labels}
