"""Trees on real hosts: what is written is the same tree when it is read."""

import pytest

from commodel.errors import UserError
from commodel.interchange.mrnet import on_hosts
from commodel.patterns.trees.files import mrnet
from commodel.patterns.trees.topologies import tree


@pytest.mark.parametrize("spec", ["flat:5", "kary:2^3", "balanced:3x2", "binomial:4", "groups:3,1,2x2"])
def test_hosts_in_order_one_a_node(spec, tmp_path):
    wanted = tree(spec)
    hosts = tmp_path / "hosts"
    hosts.write_text("# first the front end\n\n" + "".join(f"n{node % 4}.site # rack\n" for node in range(40)))
    named = on_hosts(wanted, hosts)
    assert named.names[:6] == ("n0.site:0", "n1.site:0", "n2.site:0", "n3.site:0", "n0.site:1", "n1.site:1")
    (tmp_path / "tree.top").write_text(mrnet(named))
    again = tree(f"file:{tmp_path / 'tree.top'}")
    parent_of = {again.names[i]: again.names[again.parent[i]] for i in range(1, again.nodes)}
    assert parent_of == {named.names[i]: named.names[wanted.parent[i]] for i in range(1, wanted.nodes)}


def test_hosts_that_are_none(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("a\nb c\n")
    with pytest.raises(UserError, match="hosts:2: found 'b c', wanted a host's name"):
        on_hosts(tree("flat:1"), hosts)
    hosts.write_text("a\nb\n")
    with pytest.raises(UserError, match="found 2 hosts, wanted one for each of 3 nodes"):
        on_hosts(tree("flat:2"), hosts)
