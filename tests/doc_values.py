"""Fills constants into the documentation: `make pages` rewrites what stands between `<!-- value: room.module.NAME -->`
and `<!-- end -->`."""

import importlib
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
VALUE = re.compile(r"(<!-- value: ([\w.]+)\.(\w+) -->).*?(<!-- end -->)")


def fill_values(text: str) -> str:
    """Return a page with the present values of the constants that it names."""

    def fill(match: re.Match) -> str:
        value = getattr(importlib.import_module(f"commodel.{match[2]}"), match[3])
        return f"{match[1]}{value:g}{match[4]}"

    return VALUE.sub(fill, text)


if __name__ == "__main__":
    for page in sorted(DOCS.rglob("*.md")):
        page.write_text(fill_values(page.read_text(encoding="utf-8")), encoding="utf-8")
