"""What a reader misses: what was simulated, not measured, cut short or discarded, not priced, or priced in doubt."""

import pandas as pd

from commodel.compare.table import is_library, is_said
from commodel.price.status import PriceStatus, word
from commodel.report.sections import gaps
from commodel.report.words import count, tally


def sentences(comparison: pd.DataFrame, simulated: set[str], probes: list[str]) -> list[str]:
    once, lines = comparison.drop_duplicates("point"), []
    for platform in sorted(simulated & set(once["platform"])):
        lines.append(f"{platform}: its measurements come from a simulator, not from hardware.")
    for platform in sorted(simulated & set(once.loc[is_library(once), "platform"])):
        lines.append(
            f"{platform}: its MPI library is SimGrid, whose own selector chooses the algorithms (smpi/coll-selector, "
            "`default` unless the platform sets it); a real library may choose better or worse."
        )
    lines += [*gaps.points(once), *gaps.passes(once), *probes]
    short = once[once["measured"].notna() & ~once["stop"].isin(["precision", ""])]
    if len(short):
        why = tally(short["stop"])
        lines.append(f"{count(len(short), 'point')} stopped before the asked precision was reached (limit hit: {why}).")
    discarded = once["invalid"].sum()
    if discarded:
        lines.append(
            f"{int(discarded)} of {int(discarded + once['samples'].sum())} samples discarded: a rank started late."
        )
    prices = comparison.loc[is_said(comparison), ["family", "predicted", "status", "held_out"]]
    seen = prices[~prices["held_out"]]
    if len(seen):
        line = f"{len(seen)} of {count(len(prices), 'price')} not held out: the family's own fit has seen the point"
        lines.append(f"{line} ({tally(seen['family'])}). They are listed, but count in no figure.")
    lacking = prices[prices["predicted"].isna()]
    if len(lacking):
        lines.append(f"{len(lacking)} of {count(len(prices), 'price')} missing ({tally(lacking['family'])}).")
    doubtful = prices[prices["predicted"].notna() & ~prices["status"].isin([PriceStatus.OK.value, ""])]
    if len(doubtful):
        kinds = doubtful["family"] + " " + doubtful["status"].map(word)
        lines.append(
            f"{len(doubtful)} of {count(len(prices), 'price')} doubtful ({tally(kinds)}); their status says why."
        )
    return lines or ["Nothing: every point was measured to the asked precision and priced by every family."]
