"""The LogGP parameters that Netgauge's `loggp` pattern prints or writes: a row for each size, in
microseconds.

Netgauge's L is half of the smallest round trip, including overheads; here o_s and o_r of the
smallest size are subtracted. g and G of a row are a line through all sizes up to it, so the last
row that has them is used.
"""

import re
from collections.abc import Iterator
from math import isfinite
from pathlib import Path

from commodel.errors import UserError
from commodel.interchange import Format, StatedProperties, read_source_rows
from commodel.parameters import Estimate, ParameterSet

COLUMNS = (
    "s",
    "n",
    "PRTT(1,0,s)",
    "PRTT(n,0,s)",
    "PRTT(n,PRTT(1,0,s),s)",
    "L",
    "o_s",
    "o_r",
    "g",
    "G",
    "lsqu",
)
WANTED_COLUMNS = ("s", "L", "o_s", "o_r", "g", "G")
PRINTED = re.compile(r"(?<![\w(,])(L|s|o_s|o_r|g|G)=(\S+)")


def read_parameters(path: Path) -> ParameterSet:
    rows = list(_read_rows(path))
    if not rows:
        raise UserError("found no row of s, L, o_s, o_r, g, G", file=path)
    first = min(rows, key=lambda row: row["s"])
    fitted = [
        row for row in rows if isfinite(row["g"] + row["G"]) and row["g"] >= 0 and row["G"] >= 0
    ]
    if not fitted:
        negative = sum(isfinite(row["g"] + row["G"]) for row in rows)
        why = (
            f"{negative} have a negative one: the line falls, so the times are too noisy"
            if negative
            else "none has both"
        )
        raise UserError(
            f"found {len(rows)} sizes, none with a g and G of at least 0; {why}", file=path
        )
    last = max(fitted, key=lambda row: row["s"])
    latency = first["L"] - first["o_s"] - first["o_r"]
    size = f"{first['s']:g} B"
    note = f"half of the smallest round trip, {first['L'] * 1e6:.4g} µs, less o_s and o_r of {size}"
    L = Estimate.exact(
        max(latency, 0.0),
        "s",
        note if latency > 0 else f"{note}, which is not above 0",
        latency > 0,
    )
    line = f"a line through the sizes up to {last['s']:g} B"
    skipped = len(rows) - len(fitted)
    if skipped:
        line += f"; {skipped} of {len(rows)} rows have none, or a negative one"
    values = {
        "L": L,
        "o_s": Estimate.exact(first["o_s"], "s", f"of {size}"),
        "o_r": Estimate.exact(first["o_r"], "s", f"of {size}"),
        "g": Estimate.exact(last["g"], "s", line),
        "G": Estimate.exact(last["G"], "s/B", line),
    }
    return ParameterSet(
        model="loggp",
        platform=path.stem,
        source=f"imported from {path.name}",
        values=values,
        bytes_range=(first["s"], last["s"]),
    )


def _read_rows(path: Path) -> Iterator[dict[str, float]]:
    """Yield the rows in SI units; values that are not yet determined are NaN."""
    for source_row, line in read_source_rows(path, StatedProperties()):
        printed = dict(PRINTED.findall(line))
        cells = line.split()
        if set(WANTED_COLUMNS) <= printed.keys():
            texts = printed
        elif len(cells) == len(COLUMNS) and cells[0].isdigit():
            texts = dict(zip(COLUMNS, cells, strict=True))
        elif cells and cells[0].isdigit():
            raise source_row.error(
                f"found {len(cells)} numbers, wanted {len(COLUMNS)}: {' '.join(COLUMNS)}"
            )
        else:
            continue
        row = {
            name: source_row.parse_number(texts[name]) * (1 if name == "s" else 1e-6)
            for name in WANTED_COLUMNS
        }
        if (
            not all(0 <= row[name] < 1e9 for name in ("L", "o_s", "o_r"))
            or not 0 <= row["s"] < 2**50
        ):
            raise source_row.error(
                "found an impossible size or time, wanted bytes and microseconds"
            )
        yield row


FORMAT = Format("netgauge", "Netgauge", read_parameters=read_parameters)
