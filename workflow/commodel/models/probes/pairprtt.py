"""The parametrised round trips of every pair of node types that `prtt` does not have: within a node, and between nodes.
Pairs of types, not of nodes: their number stays small on any cluster."""

from commodel.models.probes import Plan, Probe, Site, across, spread, together
from commodel.models.probes.prtt import COLUMNS, pattern, settings


def plan(site: Site, sizes: list[int]) -> Plan:
    known = spread(site, 2).pair
    places = [place for place in (*together(site, 2), *across(site)) if place.pair != known]
    return [(place, about) for place in places for about in settings(sizes)]


TITLE = "parametrised round trips by pair of types"
PROBE = Probe("pairprtt", TITLE, COLUMNS, plan, program="prtt", optional=True, pattern=pattern)
