"""The packages of commodel, the imports between them, and the map of these imports in
CONTRIBUTING.md.

`make map` writes the map; tests/test_packages.py checks it.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "workflow" / "commodel"
BEGIN, END = "<!-- map: make map -->\n", "<!-- end of map -->\n"

# From the lowest layer up. Modules outside of these packages may be imported everywhere.
PACKAGES = (
    *(
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
            names |= {
                alias.name.partition(".")[2]
                for alias in node.names
                if alias.name.startswith("commodel.")
            }
    return names


def find_imported_modules(folder: Path) -> set[str]:
    """Return the modules of the core that the Python files of a folder import."""
    modules = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                modules.add(node.module or "")
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
    return {module for module in modules if module.split(".")[0] == "commodel"}


def read_modules_for_extensions() -> set[str]:
    """Return the modules that a package of others may import, by the table in the tutorial."""
    page = (ROOT / "examples/extension/README.md").read_text(encoding="utf-8")
    _, _, section = page.partition("## What a package may import\n")
    rows = re.findall(r"^\| (`commodel.*?) \|", section, re.MULTILINE)
    return {module for row in rows for module in re.findall(r"`([a-z_.]+)`", row)}


def get_package(path: Path) -> str:
    """Return the package of a file, or the name of a module outside of packages."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def find_imports_between_packages() -> dict[tuple[str, str], list[str]]:
    """Return the importing files of every pair of packages of which the first imports from the
    second."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for target in {name.split(".")[0] for name in list_imports(path)} & set(PACKAGES):
            if target != get_package(path):
                pairs.setdefault((get_package(path), target), []).append(
                    str(path.relative_to(SOURCE))
                )
    return pairs


def read_docstring(name: str) -> str:
    source = (SOURCE / name / "__init__.py").read_text(encoding="utf-8")
    return ast.get_docstring(ast.parse(source)) or ""


def draw_map() -> str:
    """Return a line a package, the highest first. A dot marks an import from the package at the end
    of the column."""
    pairs, width = find_imports_between_packages(), max(map(len, PACKAGES))
    lines = []
    for number, name in enumerate(PACKAGES):
        dots = "".join(
            f"{'·' if (name, other) in pairs else ' '}   " for other in PACKAGES[:number]
        )
        lines.append(f"    {name:{width}}  {dots}{name}\n")
    return "".join(reversed(lines))


def split_page(text: str) -> tuple[str, str, str]:
    """Return a page's text before its map, the map, and the text after it."""
    before, _, remainder = text.partition(BEGIN)
    drawing, _, after = remainder.partition(END)
    return before + BEGIN, drawing.strip("\n"), END + after


if __name__ == "__main__":
    page = ROOT / "CONTRIBUTING.md"
    before, _, after = split_page(page.read_text(encoding="utf-8"))
    page.write_text(f"{before}\n{draw_map()}\n{after}", encoding="utf-8")
