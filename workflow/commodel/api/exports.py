"""Files for other tools from Python: `export` writes a pattern, a tree, measurements, parameters or
decisions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from commodel.api.predictions import (
    Amounts,
    Source,
    build_one_schedule,
    join_amounts,
    list_names,
    read_sets,
)
from commodel.api.result import Answer
from commodel.errors import UserError, check_option_names, suggest_name
from commodel.extensions import list_exports, load_function
from commodel.files.atomic import write_text
from commodel.interchange import goal, mrnet, rules
from commodel.interchange.rules import Assumptions
from commodel.parameters import ParameterSet
from commodel.patterns.trees.files import format_mrnet
from commodel.patterns.trees.topologies import make_tree
from commodel.units import parse_seconds

if TYPE_CHECKING:
    from commodel.api.advice import Decisions  # slow to load


@dataclass(frozen=True, eq=False, repr=False)
class Exported(Answer):
    """What was written for another tool: a row for each file, or the text itself if no file was
    named."""

    content: str = ""

    @classmethod
    def of(
        cls, format: str, source: str, content: str, out: Path | None, notes: Sequence[str] = ()
    ) -> Exported:
        """Write a text to a file, if one is named."""
        if out is None:
            rows = [{"file": "", "bytes": len(content.encode())}]
            return cls(rows, f"{source} in format {format}.", notes, [{"source": source}], content)
        write_text(out, content + "\n")
        return cls.of_files(format, source, [out], notes)

    @classmethod
    def of_files(
        cls, format: str, source: str, files: Sequence[Path], notes: Sequence[str] = ()
    ) -> Exported:
        rows = [{"file": str(file), "bytes": file.stat().st_size} for file in files]
        names = ", ".join(str(file) for file in files)
        return cls(rows, f"{source} in format {format}: {names}.", notes, [{"source": source}])

    @property
    def files(self) -> list[Path]:
        """The files written."""
        return [Path(row["file"]) for row in self.rows if row["file"]]

    def text(self, verbose: bool = True) -> str:
        """Return the text, or the paths of the files, a line each."""
        return self.content or "\n".join(map(str, self.files))


def export(format: str, source: Any, out: str | Path | None = None, **options: Any) -> Exported:
    """Write a file for another tool, or return its text if no file is named.

    | format | source | options |
    |---|---|---|
    | `goal` | an operation | `algorithm` or `topology`, `ranks`, `bytes`, `layout`; `parameters`, `gamma`, `unit` |
    | `mrnet` | a tree, such as `kary:4^2` | `hosts`, a file of names |
    | `extrap` | `observations.csv` or `comparison.csv` | `style`: `text` or `jsonl` |
    | `simgrid` | a parameter set of LogGP or Hockney | `nodes` |
    | `rules` | decisions, or a table of them | `commutative`, `same_types` |

    >>> print(export("mrnet", "kary:4^2"))  # doctest: +SKIP
    """
    further = list_exports()
    if format not in EXPORTERS and format not in further:
        raise UserError(
            f"found no format '{format}'; {suggest_name(format, [*EXPORTERS, *further])}"
        )
    exporter = EXPORTERS[format] if format in EXPORTERS else load_function(further[format])
    check_option_names(
        options, list(inspect.signature(exporter).parameters)[2:], f"export {format}"
    )
    return exporter(source, Path(out) if out else None, **options)


def export_goal(
    operation: str | None,
    out: Path | None = None,
    *,
    algorithm: str | Sequence[str] = (),
    topology: str | Sequence[str] = (),
    ranks: Amounts | None = None,
    bytes: Amounts | None = None,
    layout: str | None = None,
    parameters: Source | None = None,
    gamma: str | None = None,
    unit: str = "ns",
) -> Exported:
    """Write one pattern in GOAL, for LogGOPSim. γ, the time per byte of reduce and copy work, is
    given or that of the parameters."""
    pattern = {
        "algorithm": list_names(algorithm),
        "topology": list_names(topology),
        "layout": layout,
    }
    amounts = {"ranks": join_amounts(ranks), "sizes": join_amounts(bytes)}
    schedule = build_one_schedule(operation=operation, **pattern, **amounts)
    set_gamma, arguments = (
        goal.convert_parameters(read_set(parameters), unit) if parameters else (None, "")
    )
    per_byte = parse_seconds(gamma) if gamma else set_gamma
    notes = []
    if goal.has_untimed_work(schedule, per_byte):
        notes.append("reduce and copy work takes no time in this file; give --gamma or --params")
    return Exported.of(
        "goal", str(operation), goal.format_goal(schedule, per_byte, unit, arguments), out, notes
    )


def export_mrnet(
    tree: str, out: Path | None = None, *, hosts: str | Path | None = None
) -> Exported:
    """Write a tree as a topology of MRNet, with the names of hosts from a file."""
    topology = make_tree(tree)
    return Exported.of(
        "mrnet",
        tree,
        format_mrnet(mrnet.name_hosts(topology, Path(hosts)) if hosts else topology),
        out,
    )


def export_rules(
    decisions: str | Path | Decisions,
    out: Path | None = None,
    *,
    commutative: bool = False,
    same_types: bool = False,
) -> Exported:
    """Write Open MPI's rules from decisions, or from a table of operation, ranks, bytes and
    algorithm."""
    if not isinstance(decisions, str | Path):
        choices, source = rules.parse_choice_frame(decisions.table), "decisions"
    else:
        choices, source = rules.read_choices(Path(decisions)), str(decisions)
    content = rules.format_rules(choices, Assumptions(commutative, same_types)).rstrip("\n")
    return Exported.of("rules", source, content, out)


def read_set(source: Source) -> ParameterSet:
    """Return the only parameter set of a source."""
    sets = read_sets(source)
    if len(sets) != 1:
        raise UserError(f"found {len(sets)} parameter sets, wanted one")
    return sets[0]


EXPORTERS: Mapping[str, Callable[..., Exported]] = MappingProxyType(
    {
        "goal": export_goal,
        "mrnet": export_mrnet,
        "rules": export_rules,
    }
)
