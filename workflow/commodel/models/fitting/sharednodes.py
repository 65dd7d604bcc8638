"""Whether ranks of a probe shared nodes: then some of its messages never saw the network, and its values mix two."""

from commodel.models.fitting.observed import Cases


def sharing(cases: Cases) -> str:
    """In words for a note; empty where every rank had a node of its own."""
    found = set()
    for layout, ranks in zip(cases["layout"], cases["ranks"], strict=True):
        _, _, each = str(layout).partition(":")
        if each.isdigit() and int(each) > 1:
            found.add((min(int(each), int(ranks)), int(ranks)))
    if not found:
        return ""
    each, ranks = max(found)
    if each >= ranks:
        return f"all {ranks} ranks on one node: of messages within it"
    return f"up to {each} ranks on a node: of messages between nodes and within them"
