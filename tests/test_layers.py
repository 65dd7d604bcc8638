"""Imports only go down: every module of the package has a level, and imports from strictly lower ones only."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "workflow" / "commodel"
LEVELS = {
    -2: "errors mpikinds",
    -1: "safepaths",
    0: "process results textfiles",
    1: "stopping safecells sources holding registry units expressions yamltext toolchain tree records schedule"
    " portable",
    2: "lastwords container descent fields stats functions phases projectfiles segments simnetwork soonest treefiles"
    " window",
    3: "controller watching experiments operations platforms rounds tables fitting regression values",
    4: "allocation streams concurrency config curves doubling pairs pipelines replay roundtrips topologies layouts"
    " treetext",
    5: "attempts planfile rawfiles treedrawing matrix algorithms launchers probes families playfile",
    6: "unmeasured pricesearch leftout patterns points build provenance notation reach",
    7: "identity starts duration collect compare distributions fit interchange predict pricelist",
    8: "forecast pointfit pointtable batches sweep planview pricing",
    9: "advice heldout plan measure",
    10: "campaign traces",
    11: "status report",
    12: "statusview",
    13: "cli",
    14: "__main__",
}
LEVEL = {name: level for level, names in LEVELS.items() for name in names.split()}


def imports(path: Path) -> set[str]:
    """First names below `commodel` that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("commodel"):
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "commodel" else [node.module]
            )
            found |= {name.split(".")[1] for name in names}
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("commodel.")}
    return found - {"__version__"}


def test_every_module_has_a_level():
    modules = {path.stem for path in PACKAGE.glob("*.py")} | {
        path.parent.name for path in PACKAGE.glob("*/__init__.py")
    }
    assert modules - {"__init__"} == set(LEVEL)


def test_imports_only_go_down():
    upwards = []
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).parts
        own = place[0].removesuffix(".py")
        if own == "__init__":
            continue
        for name in imports(path):
            if name != own and LEVEL[name] >= LEVEL[own]:
                upwards.append(f"{'/'.join(place)} imports {name}")
    assert not upwards
