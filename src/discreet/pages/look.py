"""What all pictures share, whoever draws them: colours, dashes, typeface, and the room that words take."""

from __future__ import annotations

# Okabe and Ito's hues (safe for colour-blind readers), moved to a luminance that both page colours carry.
PALETTE = ("#0072b2", "#d55e00", "#00916a", "#b8639a", "#9a7800", "#77797d")
DASHES = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3), (4, 4), (12, 4))
FONT = "system-ui, sans-serif"
CHARACTER = 7.5  # pixels of a wide typeface: the reader's may be wider than the one measured here
LABEL_LIMIT = 260  # pixels
WIDE, NARROW = (640, 320), (290, 200)  # pixels: one panel, or a panel of several
