"""commodel export: files for other tools."""

import pytest

from tests.cli.running import run
from tests.interchange.goal_simulator import play

VALUES = {
    "L": "2.5e-6, unit: s",
    "o_s": "1.5e-6, unit: s",
    "o_r": "1.5e-6, unit: s",
    "g": "2e-6, unit: s",
}
VALUES |= {"G": "6e-9, unit: s/B", "gamma": "1e-9, unit: s/B"}
LOGGP = "model: loggp\nparameters:\n" + "".join(
    f"  {name}: {{value: {value}}}\n" for name, value in VALUES.items()
)
BCAST = "--operation bcast --algorithm binomial --ranks 16 --bytes 1"
REDUCE = "--operation reduce --topology flat:3 --bytes 1000"


@pytest.fixture
def params(tmp_path):
    path = tmp_path / "set.yaml"
    path.write_text(LOGGP)
    return path


def test_goal(params, tmp_path):
    text = run(f"export goal {BCAST} --params {params}").stdout
    assert "LogGOPSim -L 2500 -o 1500 -g 2000 -G 6 -O 0 -S 2147483647, in ns" in text
    assert max(play(text, 2500, 1500, 2000, 6)) == 4 * 5500  # no port sends again within g
    run(f"export goal {BCAST} -o {tmp_path}/out.goal")
    assert (tmp_path / "out.goal").read_text().startswith("num_ranks 16\n")


def test_goal_has_the_work_or_is_marked(params):
    assert "calc 3000\n" in run(f"export goal {REDUCE} --params {params}").stdout
    assert "calc 6000\n" in run(f"export goal {REDUCE} --params {params} --gamma 2ns").stdout
    assert "calc 6000000\n" in run(f"export goal {REDUCE} --gamma 2ns --unit ps").stdout
    result = run(f"export goal {REDUCE}")
    assert "give --gamma or --params" in result.stderr
    assert "calc 3000" not in result.stdout
    assert run(f"export goal {BCAST}").stderr == ""


def test_goal_of_several_patterns_is_refused():
    run("export goal --operation bcast --ranks 4 --bytes 8", code=2)


def test_mrnet(tmp_path):
    assert run("export mrnet flat:2").stdout == "node0:0 => node1:0 node2:0 ;\n"
    (tmp_path / "hosts").write_text("front\nb1\nb2\n")
    assert run(f"export mrnet flat:2 --hosts {tmp_path}/hosts").stdout == "front:0 => b1:0 b2:0 ;\n"


def test_rules(tmp_path):
    (tmp_path / "t.csv").write_text(
        "operation,ranks,bytes,algorithm,seconds\nbarrier,4,0,dissemination,1\n"
    )
    text = run(f"export rules {tmp_path}/t.csv").stdout
    assert [line.split(" #")[0] for line in text.splitlines()] == [
        "1",
        "6",
        "2",
        "2",
        "1",
        "0 0 0 0",
        "4",
        "1",
        "0 4 0 0",
    ]
    assert (
        "unknown operation" in run("export rules", _table(tmp_path, "bcst,4,8,ring"), code=2).stderr
    )


def _table(folder, row):
    path = folder / "wrong.csv"
    path.write_text(f"operation,ranks,bytes,algorithm\n{row}\n")
    return path
