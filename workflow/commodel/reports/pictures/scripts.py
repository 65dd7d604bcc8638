"""The uses of vl-convert: it bundles the scripts by which a browser draws charts (`make_bundle`), and draws charts as
SVG and PNG (`serve_requests`).

It runs V8, which reserves far more address space than it uses. If address space is limited (`ulimit -v`, as on many
login nodes), V8 kills its process. This file is therefore also a program: `render.py` starts it as a process of its
own, which may die. It imports nothing else of commodel, so that building a wheel needs no more than vl-convert.
"""

import json
import sys
from importlib.metadata import version

VERSION = "6.4"  # of Vega-Lite
NAME = f"vega-{version('vl-convert-python')}-{VERSION}.js"  # of the file that keeps them
SCALE = 2.0  # of a PNG, large enough for slides
NOTHING: list[str] = []  # no chart of ours loads anything


def make_bundle() -> str:
    """Return the scripts with the function `vegaEmbed`, which the page's script calls. Bundling needs a second."""
    import vl_convert

    text = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VERSION)
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def draw_specification(kind: str, specification: dict) -> bytes:
    import vl_convert

    if kind == "png":
        return vl_convert.vegalite_to_png(specification, vl_version=VERSION, scale=SCALE, allowed_base_urls=NOTHING)
    return vl_convert.vegalite_to_svg(specification, vl_version=VERSION, allowed_base_urls=NOTHING).encode()


def serve_requests() -> None:
    """Answer requests, `[kind, specification]` a line on standard input, each with a line of its length before it."""
    for line in sys.stdin:
        kind, specification = json.loads(line)
        answer = make_bundle().encode() if kind == "bundle" else draw_specification(kind, specification)
        sys.stdout.buffer.write(b"%d\n" % len(answer) + answer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    serve_requests()
