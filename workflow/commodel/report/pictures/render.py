"""Vega-Lite specifications as SVG and PNG, all by vl-convert, which reaches for nothing outside; and the scripts of a
page."""

import os
import re
from functools import cache

import vl_convert

from commodel.files.atomic import write_text
from commodel.files.text import MIB, read_text
from commodel.report.pictures.scripts import NAME, VERSION, bundle
from commodel.sources import ROOT

SCALE = 2.0  # of a PNG: slides are looked at from afar
TAG = re.compile(r"<[a-zA-Z][^<>]*>")  # text has no < in it
CLIP = re.compile(r'(id="|url\(#)clip(\d+)')
CIRCLE = re.compile(r'<path (.*)d="M([0-9.]+),0A\2,\2,0,1,1,-\2,0A\2,\2,0,1,1,\2,0"(.*)/>')  # as Vega writes one
EDGE = ' stroke-width="2"'
MOST_SCRIPT = 8 * MIB  # of those scripts
NOTHING: list[str] = []  # no chart of ours loads anything


def svg(spec: dict) -> str:
    """Vega numbers clip paths through all drawings of a process; here each drawing begins at 0. Dots are circles, and
    without an edge have none: on a page they are a third of its pictures."""
    text = vl_convert.vegalite_to_svg(spec, vl_version=VERSION, allowed_base_urls=NOTHING)
    numbers: dict[str, int] = {}

    def shorter(tag: re.Match) -> str:
        own = CLIP.sub(lambda clip: f"{clip[1]}clip{numbers.setdefault(clip[2], len(numbers))}", tag[0])
        own = own if " stroke=" in own else own.replace(EDGE, "")
        return CIRCLE.sub(r'<circle \1r="\2"\3/>', own)

    return TAG.sub(shorter, text)


def png(spec: dict) -> bytes:
    return vl_convert.vegalite_to_png(spec, vl_version=VERSION, scale=SCALE, allowed_base_urls=NOTHING)


@cache
def library() -> str:
    """The scripts of a page. In a clone they are kept beside the compiled programs; an installation comes with them."""
    build = ROOT / "build"
    kept = build / NAME
    if kept.is_file():
        return read_text(kept, MOST_SCRIPT, "the scripts that vl-convert bundles")
    text = bundle()
    if os.access(build, os.W_OK):
        write_text(kept, text)
    return text
