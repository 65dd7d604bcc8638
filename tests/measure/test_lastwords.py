"""Of what real starters print when something is wrong, the sentence that says something is the one that is shown.

`lastwords/*.txt` were printed by mpiexec of MPICH 4.0.2 and 5.0.2 and of Open MPI 4.1.4 and 5.0.11, and by srun of
Slurm 22.05, run wrongly on purpose: each after a line with what was wrong and one with the sentence that is wanted.
"""

import re
from pathlib import Path

from commodel.measure.process import last_words

PROGRESS = "case 1/2 a median 1.234 us, 10 samples, samples\n"
BLOCK = re.compile(r"### (.+)\n### (.+)\n((?:(?!### ).*\n)+)")
PRINTED = [
    (f"{file.stem}: {what}", wanted, text)
    for file in sorted(Path(__file__).with_name("lastwords").glob("*.txt"))
    for what, wanted, text in BLOCK.findall(file.read_text())
]


def test_the_sentence_that_says_something(tmp_path):
    wrong = {}
    for what, wanted, text in PRINTED:
        for before in ("", PROGRESS):
            (tmp_path / "log").write_text(before + text)
            if (said := last_words(tmp_path / "log")) != wanted:
                wrong[what] = said
    assert len(PRINTED) >= 45
    assert not wrong


def test_the_programs_own_words_come_first(tmp_path):
    for own in (
        "player/player.c:80: MPI_Waitall failed: out of memory",
        "kernels/product.c:7: the product does not verify",
    ):
        for _, _, text in PRINTED:
            (tmp_path / "log").write_text(f"{text}{own}\n")
            assert last_words(tmp_path / "log") == own


def test_of_mpich_s_stack_the_innermost_call_is_told(tmp_path):
    (tmp_path / "log").write_text(
        PROGRESS + "player.c:80: MPI_Waitall failed: Other MPI error, error stack:\n"
        "internal_Waitall(98)..: MPI_Waitall(count=1) failed\n"
        "MPIR_Waitall(211).....:\n"
        "deal_with(14): connection lost\n"
    )
    assert last_words(tmp_path / "log") == (
        "player.c:80: MPI_Waitall failed: Other MPI error, error stack: connection lost"
    )


def test_who_says_nothing_has_printed_nothing(tmp_path):
    for text in ("", "\n", PROGRESS):
        (tmp_path / "log").write_text(text)
        assert last_words(tmp_path / "log") == "it printed nothing"
