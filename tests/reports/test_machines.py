"""Names of machines: shortened, and hidden."""

from commodel.reports.machine_names import hider, ranges, short, siblings


def test_hosts_are_shortened_and_none_is_lost():
    assert ranges(["n10", "n2", "n1", "login", "n3", "m7", "n007", "n12"]) == ["login", "m7", "n007", "n[1-3,10,12]"]
    assert ranges([f"node-{place}" for place in range(32)]) == ["node-[0-31]"]
    assert ranges([]) == []
    about = {"nodes": ["n2", "n1"], "hosts": [], "machine": "n1"}
    assert short(about) == {"nodes": ["n[1-2]"]}
    assert short({"nodes": "n1, n2", "hosts": [7]}) == {"hosts": ["7"]}  # whatever a folder says


def test_names_are_replaced_as_whole_words():
    hide = hider({"n1", "n1-ib", "a.b"})
    assert hide({"x": ["n1, n1-ib and n11", "a.b aXb"]}) == {"x": ["machine-2, machine-3 and n11", "machine-1 aXb"]}
    assert hider(set())("n1") == "n1"


def test_machines_that_only_an_error_names_are_found_by_their_likeness():
    messages = [
        "rank 3 should be on n002, but is on n017",
        "error on n4.example.org: 12 of 16 cases",
        "n-1, login, x17",
    ]
    assert siblings({"n002", "n001", "login"}, messages) == {"n002", "n017", "n4.example.org"}
    assert siblings({"login.example.org"}, ["login2 and loginA"]) == set()
