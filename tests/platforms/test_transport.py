"""What carries messages within a node, from what MPI libraries say of themselves; and from the one that is here."""

import pytest

from commodel.platforms import transport

CM = """[n:1] ../ompi/mca/mtl/ofi/mtl_ofi_component.c:337: mtl:ofi:prov: net
[n:1] ../ompi/mca/mtl/ofi/mtl_ofi_component.c:365: mtl:ofi:provider: eth0
[n:1] select: component ofi selected
[n:1] selected cm best priority 25
[n:1] select: component cm selected
"""
OB1 = """[n:1] selected ob1 best priority 20
[n:1] mca: bml: Using {btl} btl for send to [[31153,1],1] on node n
[n:1] mca: bml: Using self btl for send to [[31153,1],0] on node n
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (CM, "Open MPI: pml cm provider net, through the network card: export OMPI_MCA_pml=ob1 takes shared memory"),
        (CM.replace("cm", "ob1") + OB1.format(btl="vader"), "Open MPI: pml ob1 vader"),
        (OB1.format(btl="tcp"), "Open MPI: pml ob1 tcp, through the network card"),
        ("==== UCX netmod Capability ====\nMPIDI_UCX_RANK_BITS: 16\n", "MPICH: shared memory; between nodes UCX"),
        ("nothing of it", ""),
    ],
)
def test_what_a_library_says_of_itself(text, words):
    assert transport.carrier_of(text).startswith(words)
    assert bool(transport.carrier_of(text)) == bool(words)


def test_what_does_not_compile_or_end_is_said(tmp_path, monkeypatch):
    for name, line in (("mpicc", "exit 3"), ("mpiexec", f"echo '{OB1.format(btl='sm')}' >&2; exit 1")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(transport, "find", lambda program: str(tmp_path / program))
    monkeypatch.setattr(transport, "beside", lambda program, other: str(tmp_path / other))
    assert transport.within_node() == "cannot be told: mpicc ended with code 3"
    (tmp_path / "mpicc").write_text("#!/bin/sh\n")
    assert transport.within_node() == "Open MPI: pml ob1 sm; mpiexec ended with code 1"
    monkeypatch.setattr(transport, "find", lambda program: None)
    assert transport.within_node() == ""


def test_what_is_here_says_what_it_uses():
    assert transport.within_node().startswith(("MPICH: ", "Open MPI: pml ")) or not transport.find("mpicc")
