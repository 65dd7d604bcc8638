"""The rooms of the package and the imports between them, read off the source; and the map of them in CONTRIBUTING.md.

`make map` writes the map, tests/test_rooms.py says whether it is true.
"""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "workflow" / "commodel"
BEGIN, END = "<!-- map: make map -->\n", "<!-- end of map -->\n"

# From the ground up. What lies on the top floor beside them may be imported from everywhere.
ROOMS = (
    *(
        "overlay",
        "files",
        "platforms",
        "patterns",
        "models",
        "interchange",
        "predictions",
        "fits",
        "plan",
        "results",
        "measure",
    ),
    *("compare", "advice", "reports", "api", "cli"),
)


def imports(path: Path) -> set[str]:
    """Modules and names below `commodel` that a file imports, as dotted names."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "commodel":
            names |= {f"{node.module}.{alias.name}".partition(".")[2] for alias in node.names}
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[2] for alias in node.names if alias.name.startswith("commodel.")}
    return names


def room(path: Path) -> str:
    """The room of a file; the name of the module on the top floor."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def arrows() -> dict[tuple[str, str], list[str]]:
    """For every pair of rooms of which the first imports from the second: which files of it do."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for target in {name.split(".")[0] for name in imports(path)} & set(ROOMS):
            if target != room(path):
                pairs.setdefault((room(path), target), []).append(str(path.relative_to(PACKAGE)))
    return pairs


def docstring(name: str) -> str:
    source = (PACKAGE / name / "__init__.py").read_text(encoding="utf-8")
    return ast.get_docstring(ast.parse(source)) or ""


def drawn() -> str:
    """A line a room, the highest first. A dot says that it imports from the room whose name ends that column."""
    pairs, width = arrows(), max(map(len, ROOMS))
    lines = []
    for place, name in enumerate(ROOMS):
        dots = "".join(f"{'·' if (name, other) in pairs else ' '}   " for other in ROOMS[:place])
        lines.append(f"    {name:{width}}  {dots}{name}\n")
    return "".join(reversed(lines))


def split(text: str) -> tuple[str, str, str]:
    """A page before its map, the map, and what comes after it."""
    before, _, rest = text.partition(BEGIN)
    drawing, _, after = rest.partition(END)
    return before + BEGIN, drawing.strip("\n"), END + after


if __name__ == "__main__":
    page = ROOT / "CONTRIBUTING.md"
    before, _, after = split(page.read_text(encoding="utf-8"))
    page.write_text(f"{before}\n{drawn()}\n{after}", encoding="utf-8")
