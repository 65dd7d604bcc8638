"""Cases and partitions that the kernels refuse: one line that says where, and no sample."""

import pytest
from tests.native.test_native_kernels import HEADER, PARTITIONS, SPEED, SUMMA, WAVE

REFUSED = {
    "columns": ("summa", f"{SUMMA}\na,pinwheel,512,all,0,1,1", "rectangles in columns"),
    "iteration": ("summa", f"{SUMMA}\na,p,512,8,0,1,1", "column iteration: found '8', wanted all, or a whole number"),
    "block": ("summa", f"{SUMMA}\na,p,100,all,0,1,1", "column bytes: found '100', wanted 8 b^2"),
    "switch": ("summa", f"{SUMMA}\na,p,512,all,2,1,1", "column overlapped: found '2', wanted 0 or 1"),
    "too large": ("summa", f"{SUMMA}\na,p,1000000000,all,0,1,0", "one MPI message"),
    "cell": ("wave2d", f"{WAVE}\na,p,16,1", "column bytes: found '16', wanted 8: a cell is a double"),
    "no file": ("wave2d", f"{WAVE}\na,absent,8,1", "cannot read the partition"),
    "gap": ("wave2d", f"{WAVE}\na,gap,8,1", "gap: found rectangles of 63 blocks in all, wanted 64"),
    "overlap": ("wave2d", f"{WAVE}\na,overlap,8,1", "overlap:3: found a rectangle that overlaps that of line 2"),
    "ranks": ("wave2d", f"{WAVE}\na,pinwheel,8,1", "found '2 ranks', wanted at least 5 ranks"),
    "kernel": ("speed", f"{SPEED}\na,fft,8,8,8,0", "column kernel: found 'fft', wanted gemm or wave"),
    "watched": ("speed", f"{SPEED}\na,wave,8,8,8,2", "column watched"),
    "slow": ("summa", f"{SUMMA}\na,slow,512,all,1,1,0", "slow:3: column speed: found '0', wanted a number above 0"),
    "no speed": ("summa", f"{SUMMA}\na,short,512,all,1,1,0", "short:2: found 5 fields, wanted 6"),
    "nothing": ("speed", f"{SPEED}\na,wave,0,8,8,0", "column width: found '0'"),
}


FILES = {
    "p": "0,0,0,4,8\n1,4,0,4,8",
    "pinwheel": PARTITIONS["pinwheel"][1],
    "gap": "0,0,0,4,8\n1,4,0,4,7\n2,4,7,3,1",
    "overlap": "0,0,0,5,8\n1,4,0,4,8",
    "slow": f"{HEADER},speed\n0,0,0,4,8,1e3\n1,4,0,4,8,0",
    "short": f"{HEADER},speed\n0,0,0,4,8\n1,4,0,4,8,1",
}


@pytest.fixture
def files(tmp_path):
    for name, rows in FILES.items():
        (tmp_path / name).write_text(f"{rows}\n" if rows.startswith(HEADER) else f"{HEADER}\n{rows}\n")


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(real, files, name):
    program, cases, complaint = REFUSED[name]
    result = real(2, program, cases)
    assert result.code != 0
    assert len(result.errors) == 1, result.err
    assert complaint in result.errors[0]
    assert result.files() == []
