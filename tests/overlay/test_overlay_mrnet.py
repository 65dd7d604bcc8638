"""MRNet's installation, against which the benchmark is compiled."""

import os
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from commodel.errors import UserError
from commodel.platforms.build import build_toolchain
from tests.platforms.test_build import on_path

__all__ = ["on_path"]


@pytest.mark.parametrize(
    "missing", ["bin/mrnet_commnode", "include/mrnet/MRNet.h", "lib/libmrnet.*", "lib/libxplat.*"]
)
def test_an_incomplete_mrnet_installation_is_refused_naming_the_missing_part(
    tmp_path, on_path, missing
):
    for part in ("bin/mrnet_commnode", "include/mrnet/MRNet.h", "lib/libmrnet.a", "lib/libxplat.a"):
        file = tmp_path / "mrnet" / part
        file.parent.mkdir(parents=True, exist_ok=True)
        if not fnmatch(part, missing):
            file.write_text("")
            file.chmod(0o755)
    on_path(tmp_path / "mrnet" / "bin", *os.environ["PATH"].split(os.pathsep))
    with pytest.raises(UserError, match=re.escape(Path(missing).name)) as error:
        build_toolchain(tmp_path, "mrnet")
    assert (
        "make install lays it out: bin, include and lib in one folder, whose bin is on PATH"
        in error.value.message
    )
