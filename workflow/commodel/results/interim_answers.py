"""The first answers of a campaign that still measures (`read_so_far`), as its last interim report
found them."""

import math
from dataclasses import dataclass

from commodel.errors import UserError, make_printable
from commodel.files.atomic import read_json
from commodel.files.safe_paths import AnyPath, SafePath

FOLDER = "so-far"  # in a folder of results
ANSWERS = "answers.json"


@dataclass(frozen=True)
class Answers:
    """What a campaign has found so far. `regret` is the mean expected regret of the advice over the
    workloads with several alternatives; NaN without any, and before a point is measured."""

    percent: int  # of the measuring time that is over
    measured: int  # cases
    lines: tuple[str, ...]
    regret: float = math.nan
    workloads: int = 0
    digest: str = ""  # of the experiment

    @property
    def text(self) -> str:
        heading = f"first answers (incomplete, {self.percent} % of the time over):"
        return "\n".join([heading, *(f"  {line}" for line in self.lines)])


def read_so_far(results: AnyPath) -> Answers | None:
    """Return the answers of the last interim report in a folder of results; None without one."""
    path = SafePath.at(results) / FOLDER / ANSWERS
    try:
        data = read_json(path) if path.exists() else {}
    except (OSError, UserError):  # it is being written
        return None
    lines = data.get("lines")
    counts = (data.get("percent"), data.get("measured"))
    if not isinstance(lines, list) or not all(isinstance(count, int) for count in counts):
        return None
    regret = data.get("regret")
    return Answers(
        data["percent"],
        data["measured"],
        tuple(make_printable(line) for line in lines),
        float(regret) if isinstance(regret, int | float) else math.nan,
        int(data.get("workloads", 0)),
        str(data.get("digest", "")),
    )
