"""The uses of vl-convert: it bundles the scripts by which a browser draws charts (`make_bundle`),
and draws charts as SVG and PNG (`serve_requests`).

It runs V8, which reserves far more address space than it uses. If address space is limited (`ulimit
-v`, as on many login nodes), V8 kills its process. This file is therefore also a program:
`render.py` starts it as a process of its own, so that its death does not end the report. It imports
nothing else of commodel, so that building a wheel needs no more than vl-convert."""

import json
import sys
from functools import lru_cache
from importlib.metadata import version

VEGA_LITE_VERSION = "6.4"
# file name of the bundled scripts
BUNDLE_NAME = f"vega-{version('vl-convert-python')}-{VEGA_LITE_VERSION}.js"
EMPTY_CHART = {"data": {"values": []}, "mark": "point"}
PNG_SCALE = 2.0  # pixels of a PNG over those of the specification; enough for slides
ALLOWED_URLS: list[str] = []  # charts load nothing


def make_bundle() -> str:
    """Return the scripts with the function `vegaEmbed`, which the page's script calls. Bundling
    needs a second."""
    import vl_convert

    text = vl_convert.javascript_bundle(
        "window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE_VERSION
    )
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def draw_specification(kind: str, specification: dict) -> bytes:
    drawing = draw_svg(json.dumps(specification))
    if kind == "png":
        import vl_convert

        return vl_convert.svg_to_png(drawing, scale=PNG_SCALE)
    return drawing.encode()


@lru_cache(maxsize=1)
def draw_svg(specification: str) -> str:
    """Return the drawing of a specification, given as JSON. The last one is kept: its PNG is made
    from it."""
    import vl_convert

    return vl_convert.vegalite_to_svg(
        specification, vl_version=VEGA_LITE_VERSION, allowed_base_urls=ALLOWED_URLS
    )


def serve_requests() -> None:
    """Answer requests, `[kind, specification]` a line on standard input, each with a line of its
    length before it. The first drawing starts V8, so one is made before any request."""
    draw_specification("svg", EMPTY_CHART)
    for line in sys.stdin:
        kind, specification = json.loads(line)
        answer = (
            make_bundle().encode() if kind == "bundle" else draw_specification(kind, specification)
        )
        sys.stdout.buffer.write(b"%d\n" % len(answer) + answer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    serve_requests()
