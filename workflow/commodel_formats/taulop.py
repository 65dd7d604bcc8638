"""The parameter tables of the τ–Lop tools (`read_tables`): a folder with SHM.txt, a table for each
network (IB.txt, TCP.txt), and gamma.txt.

The table of a channel has a row for each message size: m, o(m), L(m, 1) … L(m, τ), in seconds.
gamma.txt has a row for each size and a column for each operation, of which the sum of integers is
used.
"""

from pathlib import Path

from commodel.errors import UserError, suggest_name
from commodel.interchange import Format, read_text_lines
from commodel.models.keys import make_sample_key, parse_key
from commodel.parameters import Estimate, ParameterSet
from commodel.units import MAX_BYTES

MEMORY = "SHM"
GAMMA = "gamma"
SUM = "SUM_I"


def read_tables(folder: Path, network: str = "") -> ParameterSet:
    """Return the parameter set of a folder; `network` names the table to use if there are
    several."""
    if not folder.is_dir():
        raise UserError("wanted a folder with SHM.txt, IB.txt, …", file=folder)
    tables = {path.stem: path for path in sorted(folder.glob("*.txt"))}
    networks = [name for name in tables if name not in (MEMORY, GAMMA)]
    if network and network not in networks:
        raise UserError(f"no table '{network}.txt'; {suggest_name(network, networks)}", file=folder)
    network = network or ("IB" if "IB" in networks else next(iter(networks), ""))
    used = {0: tables.get(MEMORY), 1: tables.get(network)}
    if not any(used.values()):
        raise UserError(f"found no table of a channel, wanted {MEMORY}.txt, IB.txt, …", file=folder)
    values: dict[str, Estimate] = {}
    for channel, path in used.items():
        if path:
            values |= _read_channel(path, channel)
    sizes = [key.sample[0] for key in map(parse_key, values) if key.sample]
    forms = {parse_key(name).function: "table" for name in values}
    if GAMMA in tables:
        values |= _read_gamma(tables[GAMMA])
        forms[GAMMA] = "table"
    names = ", ".join(path.name for path in (*used.values(), tables.get(GAMMA)) if path)
    return ParameterSet(
        model="taulop",
        platform=folder.name,
        source=f"imported from {names}",
        values=values,
        forms=forms,
        bytes_range=(min(sizes), max(sizes)),
    )


def _read_channel(path: Path, channel: int) -> dict[str, Estimate]:
    values = {}
    for size, (overhead, *transfers) in _read_rows(path):
        values[make_sample_key(f"o_{channel}", size)] = Estimate.exact(overhead, "s")
        values |= {
            make_sample_key(f"L_{channel}", size, level): Estimate.exact(value, "s")
            for level, value in enumerate(transfers, 1)
        }
    return values


def _read_gamma(path: Path) -> dict[str, Estimate]:
    header = next(
        (line.split() for _, line in read_text_lines(path) if line.startswith("#size")), []
    )
    if SUM not in header:
        raise UserError(f"found no column {SUM}", file=path)
    column = header.index(SUM) - 1
    rows = _read_rows(path)
    if len(rows[0][1]) <= column:
        raise UserError(
            f"found {len(rows[0][1])} numbers in a row, wanted one below {SUM}", file=path
        )
    return {make_sample_key(GAMMA, size): Estimate.exact(row[column], "s") for size, row in rows}


def _read_rows(path: Path) -> list[tuple[int, list[float]]]:
    """Return the sizes and their numbers; every row has as many numbers as the first."""
    rows: list[tuple[int, list[float]]] = []
    for number, line in read_text_lines(path):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            size, *row = (float(text) for text in line.split())
        except ValueError:
            raise UserError(
                f"found '{line.strip()[:60]}', wanted numbers only", file=path, line=number
            ) from None
        possible = row and all(0 <= value < 1e9 for value in row)
        if not possible or not 0 <= size <= MAX_BYTES or size != int(size):
            raise UserError(
                "found an impossible size or time, wanted bytes and seconds", file=path, line=number
            )
        if rows and len(row) != len(rows[0][1]):
            raise UserError(
                f"found {len(row)} numbers, wanted {len(rows[0][1])}", file=path, line=number
            )
        rows.append((int(size), row))
    if not rows:
        raise UserError("found no row of numbers", file=path)
    return rows


FORMAT = Format("taulop", "the τ–Lop tools", read_parameters=read_tables)
