"""The bar of a whole and its parts: lengths are shares, every part is named, nothing leaves the picture."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from discreet.pages.bar import HEIGHT, WIDTH, Bar
from discreet.pages.look import CHARACTER, PALETTE
from discreet.pages.svg import data, svg

SVG = "{http://www.w3.org/2000/svg}"
PARTS = {
    "few": (("jobs", 1.0), ("left", 3.0)),
    "hostile": (("<script>&", 0.5), ("left", 0.5)),
    "long": tuple((f"a release with a long name, number {i}", i + 1.0) for i in range(6)),
    "nothing": (("left", 0.0),),
}


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_lengths_are_shares_and_all_parts_are_named(parts: tuple[tuple[str, float], ...]) -> None:
    bar = Bar(parts, "epsilon")
    picture = ElementTree.fromstring(svg(bar, alt="what it shows", name="it"))
    assert picture.findtext(f"{SVG}desc") == "what it shows"
    stretches = [each.attrib for each in picture.iter(f"{SVG}rect") if each.attrib["height"] == str(HEIGHT)]
    whole = sum(length for _, length in parts) or 1
    assert [float(each["width"]) for each in stretches] == pytest.approx(
        [WIDTH * b / whole for _, b in parts], abs=0.01
    )
    assert [each["fill"] for each in stretches] == list(PALETTE[: len(parts)])
    words = list(picture.iter(f"{SVG}text"))
    for word, (part, _) in zip(words, parts, strict=True):
        assert (word.text or "").startswith(f"{part}: ")
        assert float(word.attrib["x"]) + CHARACTER * len(word.text or "") <= WIDTH
        assert float(word.attrib["y"]) < float(picture.attrib["height"])
    assert data(bar) == [{"part": part, "epsilon": length} for part, length in parts]
