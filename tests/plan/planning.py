"""A matrix with trees, layouts and a barrier, platforms to plan it on, and the points of a plan by
workload."""

from itertools import groupby

PLATFORM = "title: some nodes\nlauncher: slurm\nnodes: 32\ncores: 16\n"
SIMULATED = "launcher: simgrid\nnodes: 64\ncores: 1\nsimgrid: {file: loggp-64.xml}\n"
MATRIX = """
  - axes: {operation: bcast, algorithm: [linear, binomial], layout: ["block:2", "cyclic:2", "block:4"], ranks: [7, 8], bytes: [8, 1KiB]}
  - axes: {operation: reduce, topology: ["flat:8", "kary:2^3", "flat:5"], layout: ["block:1", "cyclic:1", "block:2"], bytes: 8}
  - axes: {operation: barrier, algorithm: dissemination, ranks: 9}
"""  # noqa: E501


def alternatives(points):
    """Return the points of each workload."""
    ordered = sorted(points, key=lambda point: point.workload)
    return {
        group: list(members)
        for group, members in groupby(ordered, key=lambda point: point.workload)
    }
