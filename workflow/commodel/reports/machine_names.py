"""Names of machines: all that a folder of results holds, shortened for a reader or hidden from him.

Links from a report to the raw files behind its numbers. A link leads from the report's folder to that of the results
and down to a file of samples, by names that we give ourselves: whatever else a table or a workbook says is text."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from commodel.files.results_folder import Results
from commodel.files.yaml import Document
from commodel.files.yaml import read as read_yaml
from commodel.records import PATH_PART
from commodel.results.provenance import Traces
from commodel.units import ranges as in_runs
from commodel.units import shown

WORD = re.compile(r"[\w-]+(?:\.[\w-]+)*")


def ranges(names: Iterable[str]) -> list[str]:
    """`n1 n2 n3 login` as `login n[1-3]`, which Slurm's tools read too: no name is left out."""
    stems: dict[str, list[int]] = {}
    others = []
    for name in names:
        if match := re.fullmatch(r"(.*?)(0|[1-9][0-9]{0,8})", name):
            stems.setdefault(match[1], []).append(int(match[2]))
        else:
            others.append(name)
    for stem, numbers in stems.items():
        parts = in_runs(sorted(numbers))
        others.append(f"{stem}[{','.join(parts)}]" if len(numbers) > 1 else f"{stem}{parts[0]}")
    return sorted(others)


def short(about: Mapping) -> dict[str, list[str]]:
    """What a batch says of machines, as ranges."""
    return {key: ranges(map(str, about[key])) for key in ("hosts", "nodes") if _listed(about.get(key))}


def machines(provenance: Mapping[str, dict], traces: Traces, results: Results) -> set[str]:
    """All that the results or the inputs name. The nodes that SimGrid simulates belong to nobody."""
    names = {str(about.get("machine", "")) for about in provenance.values()}
    names |= {name for entry in traces.attempts for name in (entry["host"], *entry["nodes"])}
    real = [about for about in provenance.values() if not about.get("simulated")]
    names |= {str(name) for about in real for name in (*about["hosts"], *_listed(about.get("nodes")))}
    for path in results.inputs():
        if path.parent.name == "platforms" and path.suffix in (".yaml", ".yml"):
            names |= {str(name) for name in _hosts(read_yaml(path))}
    return names - {""}


def _listed(value: object) -> list:
    return value if isinstance(value, list) else []


def _hosts(platform: Document) -> list:
    """The machines that a platform file names."""

    def wanted(value: object, kind: type, what: str, *place: str):
        if not isinstance(value, kind):
            raise platform.error(place, f"found {shown(value)}, wanted {what}")
        return value

    section = wanted(platform.data, dict, "a mapping").get("hosts") or {}
    names = wanted(section, dict, "a mapping", "hosts").get("names") or []
    return wanted(names, list, "a list", "hosts", "names")


def siblings(names: Iterable[str], texts: Iterable[str]) -> set[str]:
    """Words of what was told that differ from these names by numbers or a domain: an error may name a machine that
    nothing was measured on."""
    shapes = {_shape(name) for name in names if re.search(r"[0-9]", name)}
    return {word for text in texts for word in WORD.findall(text) if _shape(word) in shapes}


def _shape(name: str) -> str:
    return re.sub(r"[0-9]+", "#", name.partition(".")[0])


def hider(names: set[str]) -> Callable:
    """A function that puts numbers in the place of these names, wherever they stand in nested texts."""
    number = {name: f"machine-{place}" for place, name in enumerate(sorted(names), 1)}
    longest_first = sorted(map(re.escape, names), key=len, reverse=True)
    names_pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(longest_first)})(?![\w-])") if names else re.compile(r"(?!)")

    def hide(value):
        if isinstance(value, str):
            return names_pattern.sub(lambda match: number[match[0]], value)
        if isinstance(value, Mapping):
            return {key: hide(entry) for key, entry in value.items()}
        return [hide(entry) for entry in value] if isinstance(value, list) else value

    return hide


NAME = PATH_PART.pattern
BASE = re.compile(rf"(\.\./){{0,20}}(\.|\.\.|{NAME}(/{NAME})?)")
RAW = re.compile(rf"raw/{NAME}/{NAME}\.csv")


def results_from(report: Path, results: str) -> str:
    """How the folder of the results is seen from the report's; empty where they do not lie in one project, because the
    names of folders in between are nobody's matter."""
    path = Path(os.path.relpath(results, report)).as_posix()
    return path if BASE.fullmatch(path) else ""


def raw_link(results: str, path: str) -> str:
    """Where a file of samples is, seen from the report; empty for what is no such file, and where no link leads."""
    return f"{results}/{path}" if BASE.fullmatch(results) and RAW.fullmatch(path) else ""
