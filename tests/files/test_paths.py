"""Paths below a folder: no name leads out of it, and a new file has the rights of any other."""

import stat
from contextlib import chdir

import pytest

from commodel.errors import UserError
from commodel.files.safe_paths import SafePath


def test_names_do_not_lead_out(tmp_path):
    for name in ("..", ".", "a/../b", "/etc", "a\0", "a//b", ""):
        with pytest.raises(UserError, match="found the name"):
            SafePath(tmp_path) / name


def test_a_new_file_has_the_rights_that_the_user_s_mask_gives(tmp_path):
    with chdir(tmp_path), (SafePath(tmp_path) / "a/b").whole() as stream:
        stream.write(b"x")
    (tmp_path / "plain").touch()
    assert stat.S_IMODE((tmp_path / "a/b").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]
