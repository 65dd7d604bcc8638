"""Results of collectives for legal but unusual inputs: libraries pass, and a wrong algorithm is noticed."""

import pytest

from commodel.models.probes.verify import INPUTS, list_cases


def rows(operations, ranks, sizes=(4096,)):
    lines = ["id,collective,input,communicator,bytes"]
    for name in operations:
        for number, about in enumerate(list_cases(name, ranks, sizes)):
            lines.append(f"{name}.{about['input']}.{number},{','.join(str(value) for value in about.values())}")
    return "\n".join(lines)


@pytest.mark.parametrize("ranks", [1, 5])
def test_the_library_at_hand_is_right(crowded, ranks):
    result = crowded(ranks, "verify", rows(INPUTS, ranks))
    assert result.code == 0, result.err
    assert len(result.files()) == rows(INPUTS, ranks).count("\n")


@pytest.mark.parametrize(
    ("operation", "setting", "input"),
    [
        ("reduce", "smpi/reduce:binomial", ""),
        ("allreduce", "smpi/allreduce:rdb", ""),
        ("allreduce", "smpi/allreduce:lr", "order"),
    ],
)
def test_an_algorithm_that_reorders_operands_is_noticed(simulated, operation, setting, input):
    result = simulated(8, "verify", rows([operation], 8), "--sync", "barrier", settings=[setting])
    if not input:
        assert result.code == 0, result.err
    else:
        assert result.code != 0
        assert any(f"{operation}, input {input}, " in line and "is wrong" in line for line in result.errors)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("a,bcst,plain,2,8", "collective"),
        ("a,bcast,order,2,8", "input"),
        ("a,bcast,plain,0,8", "communicator"),
        ("a,bcast,plain,3,8", "communicator"),
    ],
)
def test_a_case_that_no_collective_has_is_refused(real, row, complaint):
    result = real(2, "verify", f"id,collective,input,communicator,bytes\n{row}")
    assert result.code != 0
    assert any(complaint in line for line in result.errors)
