"""Which families are right on a table of measured collectives about what their fit has not seen, and what choosing by
them costs: sizes, more ranks and, where the table has several settings, one of these after the other (`a job`) are held
out. Below families stand two rules that know no model of communication (`compare/baselines.py`). Arguments: a table as
`commodel import` writes it, families. Minutes a family.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from tests.bench.coverage import MOST_RANKS, TABLE_FAMILIES
from tests.bench.scores import scores

from commodel.cli._output import table
from commodel.compare.baselines import judged_baselines
from commodel.compare.held_out import Split, fit_seen, judged, split
from commodel.errors import UserError
from commodel.fits.measured_tables import Measured, read_points
from commodel.fits.settings import only, reference_of, settings_of
from commodel.records import LIBRARY

EVERY_OTHER_SIZE = "log2(max(bytes, 1)) // 3 % 2 == 0"


def held_out(measured: Measured) -> Iterator[tuple[str, list[str]]]:
    """What is held out, and expressions of the parts of it that are, one after the other."""
    yield "other sizes", [EVERY_OTHER_SIZE]
    ranks = sorted({point.ranks for point in measured.points})
    if len(ranks) > 1:
        yield "more ranks", [f"ranks > {ranks[(len(ranks) - 1) // 2]}"]
    settings = list(dict.fromkeys(settings_of(measured)))
    if len(settings) > 1:
        yield "a job", [f"setting == '{setting}'" for setting in settings]


def priced(parts: Split, families: list[str], name: str) -> Iterator[pd.DataFrame]:
    """A row for each point held out and each family, then each baseline, and the library's own times."""
    for family in families:
        try:
            yield judged(fit_seen(parts, family, name), parts.unseen)
        except UserError as error:
            print(f"{family}: {error.message}", file=sys.stderr)
    yield judged_baselines(parts, reference_of(parts.seen))
    times = parts.unseen.library.items()
    library = [{"group": f"{group} {setting}", "measured": seconds} for (group, setting), seconds in times]
    yield pd.DataFrame(library).assign(family="", algorithm=LIBRARY)


def judged_table(path: Path, families: list[str]) -> Iterator[dict]:
    whole = read_points(path)
    measured = only(whole, [point.ranks <= MOST_RANKS for point in whole.points])
    for title, expressions in held_out(measured):
        try:
            parts = [split(measured, where) for where in expressions]
        except UserError as error:
            print(f"{title}: {error.message}", file=sys.stderr)
            continue
        rows = pd.concat([rows for part in parts for rows in priced(part, families, path.name)], ignore_index=True)
        yield from ({"table": path.name, "held out": title} | row for row in scores(rows))


def main(path: Path, families: list[str]) -> None:
    print(table(list(judged_table(path, families or list(TABLE_FAMILIES)))))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
