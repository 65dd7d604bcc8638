"""The scripts by which a browser draws charts: Vega, Vega-Lite and Vega-Embed as one text. Nothing else of commodel is
imported here, so that building a wheel needs no more than vl-convert."""

import vl_convert

VERSION = "6.4"  # of Vega-Lite
NAME = f"vega-{vl_convert.__version__}-{VERSION}.js"  # of the file that keeps them


def bundle() -> str:
    """What the page's script calls `vegaEmbed`. It takes a second."""
    text = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VERSION)
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")
