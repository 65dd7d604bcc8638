"""Fills constants into the documentation: `make pages` rewrites what stands between `<!-- value: room.module.NAME -->`
and `<!-- end -->`, and the tables of keys between `<!-- keys: experiment -->` and `<!-- end of keys -->`."""

import importlib
import re
from pathlib import Path

from tests.doc_keys import describe_keys

DOCS = Path(__file__).resolve().parents[1] / "docs"
VALUE = re.compile(r"(<!-- value: ([\w.]+)\.(\w+) -->).*?(<!-- end -->)")
KEYS = re.compile(r"(<!-- keys: (\w+) -->\n).*?(<!-- end of keys -->)", re.DOTALL)


def fill_values(text: str) -> str:
    """Return a page with the present values of the constants, and tables of the keys, that it names."""

    def fill(match: re.Match) -> str:
        value = getattr(importlib.import_module(f"commodel.{match[2]}"), match[3])
        return f"{match[1]}{value:g}{match[4]}"

    text = KEYS.sub(lambda match: f"{match[1]}\n{describe_keys(match[2])}\n{match[3]}", text)
    return VALUE.sub(fill, text)


if __name__ == "__main__":
    for page in sorted(DOCS.rglob("*.md")):
        page.write_text(fill_values(page.read_text(encoding="utf-8")), encoding="utf-8")
