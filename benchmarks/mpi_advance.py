"""Alltoall of Dane and allgather of Lassen, as published by MPI Advance, as a table of commodel:
`python -m benchmarks.mpi_advance FILE.csv -o TABLE.csv`.

The algorithms of its repository and ours:

- hierarchical, multileader: gather at each of the leaders, exchange among all leaders, scatter;
- node-aware: exchange among the ranks of equal positions on their nodes, then within nodes;
- locality-aware: the same with parts of nodes in place of nodes;
- multileader-node-aware: gather at each leader, node-aware exchange among leaders, scatter;
- allgathers by Bruck: among leaders (`hier`), in lanes (`mult_hier`), or with an allgather within
  nodes after each step (`loc`).

Each exchange is pairwise or nonblocking, which is our `linear`. `make bench-heldout TABLE=TABLE.csv`
has the errors. With the probes of that machine, `commodel fit table PROBES.csv TABLE.csv --hold-out
'operation == "alltoall"'` predicts it by the probes alone."""

import argparse
import csv
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from commodel.records import LIBRARY

EXCHANGES = {"pairwise": "pairwise", "nonblocking": "linear"}
ALLGATHER = {
    "allgather_ring": "ring",
    "allgather_bruck": "bruck",
    "allgather_hier_bruck": "hier:inter=bruck",
    "allgather_mult_hier_bruck": "lanes:inter=bruck:intra=bruck",
    "allgather_loc_bruck": "locality-bruck",
    "PMPI_Allgather": LIBRARY,
}
COLUMNS = ("operation", "algorithm", "layout", "ranks", "bytes", "seconds", "statistic", "setting")
Row = Mapping[str, str]


def name_alltoall(row: Row) -> str:
    """Return our name of a variant of Dane's table; empty if there is none."""
    variant = row["algorithm"]
    if variant == "library":
        return LIBRARY
    exchange = EXCHANGES[row["exchange"]]
    leaders = int(row["leaders_per_node"] or 1)
    among_leaders = f"leaders={leaders}" if leaders > 1 else "leaders=1"
    lanes = f"lanes(inter={exchange},intra={exchange})"
    return {
        "hierarchical": f"hier(inter={exchange},intra=linear)",
        "multileader": f"hier(inter={exchange},intra=linear,{among_leaders})",
        "node-aware": lanes,
        "locality-aware": f"lanes(inter={exchange},intra={exchange},{among_leaders})",
        "multileader-node-aware": f"hier(inter={lanes},intra=linear,{among_leaders})",
    }.get(variant, "")


def read_rows(path: Path) -> Iterator[dict[str, object]]:
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row.get("phase", "total") != "total":
                continue
            is_alltoall = "exchange" in row
            operation = "alltoall" if is_alltoall else "allgather"
            algorithm = name_alltoall(row) if is_alltoall else ALLGATHER.get(row["algorithm"], "")
            if not algorithm:
                print(f"left out: {row['algorithm']}", file=sys.stderr)
                continue
            size = row["bytes_per_pair" if is_alltoall else "bytes_per_rank"]
            yield {
                "operation": operation,
                "algorithm": algorithm,
                "layout": f"block:{row['ranks_per_node']}",
                "ranks": row["ranks"],
                "bytes": size,
                "seconds": row["seconds"],
                "statistic": "completion",
                "setting": "",
            }


def main() -> None:
    parser = argparse.ArgumentParser(description="Tables of MPI Advance as tables of commodel.")
    parser.add_argument("file", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    with options.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(read_rows(options.file))


if __name__ == "__main__":
    main()
