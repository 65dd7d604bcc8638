"""The packages of commodel and the imports between them, from the source; and their map in CONTRIBUTING.md.

`make map` writes the map, tests/test_packages.py checks it.
"""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "workflow" / "commodel"
BEGIN, END = "<!-- map: make map -->\n", "<!-- end of map -->\n"

# The lowest first. Every package may import the modules that lie in no package.
PACKAGES = (
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


def list_imports(path: Path) -> set[str]:
    """Return the modules and names below `commodel` that a file imports, as dotted names."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "commodel":
            names |= {f"{node.module}.{alias.name}".partition(".")[2] for alias in node.names}
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[2] for alias in node.names if alias.name.startswith("commodel.")}
    return names


def find_package(path: Path) -> str:
    """Return the package of a file, or the name of a module that lies in no package."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def find_imports() -> dict[tuple[str, str], list[str]]:
    """Return for every pair of packages of which the first imports from the second the files that do."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for target in {name.split(".")[0] for name in list_imports(path)} & set(PACKAGES):
            if target != find_package(path):
                pairs.setdefault((find_package(path), target), []).append(str(path.relative_to(PACKAGE)))
    return pairs


def read_docstring(name: str) -> str:
    source = (PACKAGE / name / "__init__.py").read_text(encoding="utf-8")
    return ast.get_docstring(ast.parse(source)) or ""


def draw_map() -> str:
    """Return a line for each package, the highest first. A dot means that it imports from the package whose name
    ends that column."""
    pairs, width = find_imports(), max(map(len, PACKAGES))
    lines = []
    for place, name in enumerate(PACKAGES):
        dots = "".join(f"{'·' if (name, other) in pairs else ' '}   " for other in PACKAGES[:place])
        lines.append(f"    {name:{width}}  {dots}{name}\n")
    return "".join(reversed(lines))


def split_page(text: str) -> tuple[str, str, str]:
    """Return the page before its map, the map, and the page after it."""
    before, _, rest = text.partition(BEGIN)
    drawing, _, after = rest.partition(END)
    return before + BEGIN, drawing.strip("\n"), END + after


if __name__ == "__main__":
    page = ROOT / "CONTRIBUTING.md"
    before, _, after = split_page(page.read_text(encoding="utf-8"))
    page.write_text(f"{before}\n{draw_map()}\n{after}", encoding="utf-8")
