"""Tables that people open in a spreadsheet."""

import pandas as pd
import pytest

from commodel.tables import inert, read_table, write_table


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx", "=cmd|' /C calc'!A0"])
def test_no_text_is_taken_for_a_formula(text, tmp_path):
    frame = pd.DataFrame({"reason": ["plain", text, None], "seconds": [-1.5, 2.0, 3.0]})
    write_table(tmp_path / "x.csv", frame)
    found = read_table(tmp_path / "x.csv", ("reason",))
    assert found["reason"].tolist() == ["plain", f"'{text}", ""]
    assert found["seconds"].tolist() == [-1.5, 2.0, 3.0]
    assert frame["reason"][1] == text  # the caller's stays as it was


def test_a_table_of_harmless_texts_is_not_copied():
    frame = pd.DataFrame({"a": ["x", "y"], "b": [1, 2]})
    assert inert(frame) is frame
