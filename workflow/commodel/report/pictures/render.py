"""Vega-Lite specifications as SVG and PNG, and the scripts by which a browser draws them: all by vl-convert, which
reaches for nothing outside."""

import os
import re
from functools import cache

import vl_convert

from commodel.files.atomic import write_text
from commodel.files.text import MIB, read_text
from commodel.sources import ROOT

VERSION = "6.4"  # of Vega-Lite
SCALE = 2.0  # of a PNG: slides are looked at from afar
TAG = re.compile(r"<[a-zA-Z][^<>]*>")  # text has no < in it
CLIP = re.compile(r'(id="|url\(#)clip(\d+)')
MOST = 8 * MIB  # of those scripts
NOTHING: list[str] = []  # no chart of ours loads anything


def svg(spec: dict) -> str:
    """Vega numbers clip paths through all drawings of a process; here each drawing begins at 0."""
    text = vl_convert.vegalite_to_svg(spec, vl_version=VERSION, allowed_base_urls=NOTHING)
    numbers: dict[str, int] = {}

    def renumbered(tag: re.Match) -> str:
        return CLIP.sub(lambda clip: f"{clip[1]}clip{numbers.setdefault(clip[2], len(numbers))}", tag[0])

    return TAG.sub(renumbered, text)


def png(spec: dict) -> bytes:
    return vl_convert.vegalite_to_png(spec, vl_version=VERSION, scale=SCALE, allowed_base_urls=NOTHING)


@cache
def library() -> str:
    """Vega, Vega-Lite and Vega-Embed, which the page's script calls `vegaEmbed`. To bundle them takes a second: in a
    clone the bundle is kept beside the compiled programs."""
    build = ROOT / "build"
    kept = build / f"vega-{vl_convert.__version__}-{VERSION}.js"
    if kept.is_file():
        return read_text(kept, MOST, "the scripts that vl-convert bundles")
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VERSION)
    bundle = bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    if os.access(build, os.W_OK):
        write_text(kept, bundle)
    return bundle
