"""A picture as a card: light paper with a border and rounded corners, which stands on a light page and on a dark one.

Ink that can be read on both pages would be grey. So the paper is part of the picture, and only its corners are
transparent.
"""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageChops, ImageColor, ImageDraw

_COLOURS = 128
"""Of a palette; lines and letters need few, and the file has a third of its size."""
_CORNERS = 8
"""Further places of the palette: the border in steps from transparent to opaque."""
_RADIUS = 12
_BORDER = 1.5
"""In pixels."""
_FINER = 4
"""A mask is drawn larger and made smaller again, so that its edge is smooth."""


def card(drawn: Image.Image, border: str) -> bytes:
    """`drawn` as the bytes of a PNG with a palette, in the same size; the corners are cut off."""
    shape = _rounded(drawn.size, 0.0)
    opaque = drawn.convert("RGB")
    opaque.paste(border, mask=ImageChops.subtract(shape, _rounded(drawn.size, _BORDER)))
    packed = opaque.quantize(_COLOURS, dither=Image.Dither.NONE)
    alpha, pixels = np.asarray(shape), np.array(packed)
    step = (alpha.astype(int) * (_CORNERS - 1)) // 255
    pixels = np.where(alpha == 255, pixels, _COLOURS + step).astype(np.uint8)
    palette = (packed.getpalette() or [])[: 3 * _COLOURS]
    palette += [0] * (3 * _COLOURS - len(palette)) + list(ImageColor.getrgb(border)) * _CORNERS
    image = Image.fromarray(pixels, mode="P")
    image.putpalette(palette)
    steps = bytes(255 * place // (_CORNERS - 1) for place in range(_CORNERS))
    file = io.BytesIO()
    image.save(file, format="png", optimize=True, transparency=bytes([255] * _COLOURS) + steps)
    return file.getvalue()


def _rounded(size: tuple[int, int], inset: float) -> Image.Image:
    """A mask of the card, `inset` pixels within its edge."""
    width, height = size
    mask = Image.new("L", (width * _FINER, height * _FINER))
    least = round(inset * _FINER)
    box = (least, least, width * _FINER - 1 - least, height * _FINER - 1 - least)
    ImageDraw.Draw(mask).rounded_rectangle(box, round((_RADIUS - inset) * _FINER), fill=255)
    return mask.resize(size, Image.Resampling.BOX)
