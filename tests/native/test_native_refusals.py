"""Every input error is reported in one line, with a non-zero exit code and without a sample."""

BROKEN_CASES = {
    "empty file": ("pingpong", "", "cases.csv:1", "wanted a header"),
    "no id": ("pingpong", "bytes\n8", "cases.csv:1", "wanted 'id'"),
    "unknown column": ("pingpong", "id,bytes,colour\na,8,red", "cases.csv:1", "unknown 'colour'"),
    "missing column": (
        "fan",
        "id,direction,how,n,answer\na,out,isend,1,8",
        "cases.csv:1",
        "column bytes",
    ),
    "column twice": ("pingpong", "id,bytes,bytes\na,8,8", "cases.csv:1", "again 'bytes'"),
    "bad number": ("pingpong", "id,bytes\na,8\nb,8x", "cases.csv:3", "column bytes: found '8x'"),
    "negative": ("pingpong", "id,bytes\na,-8", "cases.csv:2", "found '-8'"),
    "no number": ("pingpong", "id,bytes\na,", "cases.csv:2", "found ''"),
    "too big": ("pingpong", "id,bytes\na,3000000000", "cases.csv:2", "2147483647"),
    "infinite": ("prtt", "id,n,delay,late,bytes\na,1,1e999,0,8", "cases.csv:2", "column delay"),
    "fields": ("pingpong", "id,bytes\na,8,9", "cases.csv:2", "found 3 fields, wanted 2"),
    "none to send": ("prtt", "id,n,delay,late,bytes\na,0,0,0,8", "cases.csv:2", "column n"),
    "direction": (
        "fan",
        "id,direction,how,n,bytes,answer\na,up,isend,1,8,8",
        "cases.csv:2",
        "out, in or round",
    ),
    "how": (
        "fan",
        "id,direction,how,n,bytes,answer\na,in,write,1,8,8",
        "cases.csv:2",
        "isend, list or put",
    ),
    "fan of none": (
        "fan",
        "id,direction,how,n,bytes,answer\na,in,put,0,8,8",
        "cases.csv:2",
        "column n: found '0'",
    ),
    "fan too wide": (
        "fan",
        "id,direction,how,n,bytes,answer\na,in,put,2,8,8",
        "cases.csv:2",
        "at least 3 ranks",
    ),
    "post how": ("post", "id,how,n,bytes\na,send,1,8", "cases.csv:2", "isend, list, put or irecv"),
    "post none": ("post", "id,how,n,bytes\na,isend,0,8", "cases.csv:2", "column n: found '0'"),
    "post too wide": ("post", "id,how,n,bytes\na,isend,2,8", "cases.csv:2", "at least 3 ranks"),
    "no pair": ("pairs", "id,pairs,bytes\na,0,8", "cases.csv:2", "column pairs: found '0'"),
    "pairs too wide": ("pairs", "id,pairs,bytes\na,2,8", "cases.csv:2", "at least 4 ranks"),
    "no sender": (
        "stream",
        "id,senders,each,bytes\na,0,1,8",
        "cases.csv:2",
        "column senders: found '0'",
    ),
    "stream of none": (
        "stream",
        "id,senders,each,bytes\na,1,0,8",
        "cases.csv:2",
        "column each: found '0'",
    ),
    "stream too wide": (
        "stream",
        "id,senders,each,bytes\na,2,1,8",
        "cases.csv:2",
        "at least 3 ranks",
    ),
    "superstep of one": (
        "hrelation",
        "id,procs,h,bytes\na,1,1,8",
        "cases.csv:2",
        "column procs: found '1'",
    ),
    "superstep too wide": (
        "hrelation",
        "id,procs,h,bytes\na,3,0,8",
        "cases.csv:2",
        "at least 3 ranks",
    ),
    "copy": ("memcopy", "id,path,bytes\na,mtc,8", "cases.csv:2", "ctc, ctm, mtm or anew"),
    "copy too big": (
        "memcopy",
        "id,path,bytes\na,ctc,600000000",
        "cases.csv:2",
        "at most 536870912",
    ),
    "overlap": ("overlap", "id,what,messages,bytes\na,both,1,8", "cases.csv:2", "control or user"),
    "flood of what": (
        "flood",
        "id,what,senders,packets,bytes\na,lost,1,1,8",
        "cases.csv:2",
        "arrived, through, held or room",
    ),
    "flood without room for numbers": (
        "flood",
        "id,what,senders,packets,bytes\na,held,1,1,15",
        "cases.csv:2",
        "column bytes: found '15', wanted at least 16 bytes",
    ),
    "flood of none": (
        "flood",
        "id,what,senders,packets,bytes\na,arrived,1,0,8",
        "cases.csv:2",
        "column packets: found '0'",
    ),
    "flood by nobody": (
        "flood",
        "id,what,senders,packets,bytes\na,arrived,0,1,8",
        "cases.csv:2",
        "column senders: found '0'",
    ),
    "flood too wide": (
        "flood",
        "id,what,senders,packets,bytes\na,arrived,2,1,8",
        "cases.csv:2",
        "at least 3 ranks",
    ),
    "datagram too small": (
        "flood",
        "id,what,senders,packets,bytes\na,arrived,1,1,7",
        "cases.csv:2",
        "8 to 65507",
    ),
    "datagram too big": (
        "flood",
        "id,what,senders,packets,bytes\na,arrived,1,1,65508",
        "cases.csv:2",
        "8 to 65507",
    ),
    "too few ranks": ("chain", "id,height,bytes\na,1,8\nb,2,8", "cases.csv:3", "at least 3 ranks"),
    "id twice": ("pingpong", "id,bytes\na,8\nb,8\na,0", "cases.csv:4", "line 2"),
    "id as path": ("pingpong", "id,bytes\n../a,8", "cases.csv:2", "column id"),
    "no schedule": (
        "player",
        "id,schedule,finish\na,absent.csv,all",
        "absent.csv",
        "cannot read the schedule",
    ),
    "no wave": (
        "player",
        "id,schedule,finish,waves\na,good.csv,all,0",
        "cases.csv:2",
        "waves: found '0', wanted a whole",
    ),
    "waves of words": (
        "player",
        "id,waves,schedule,finish\na,x,good.csv,all",
        "cases.csv:2",
        "from 1 to 100000",
    ),
    "too many waves": (
        "library",
        "id,operation,bytes,waves\na,bcast,8,100001",
        "cases.csv:2",
        "found '100001'",
    ),
    "waves of a probe": ("pingpong", "id,bytes,waves\na,8,2", "cases.csv:1", "unknown 'waves'"),
    "waves twice": (
        "player",
        "id,waves,waves,schedule,finish\na,1,1,good.csv,all",
        "cases.csv:1",
        "unknown 'waves'",
    ),
    "finish": ("player", "id,schedule,finish\na,good.csv,some", "cases.csv:2", "column finish"),
    "finish rank": (
        "player",
        "id,schedule,finish\na,good.csv,2",
        "cases.csv:2",
        "at least 3 ranks",
    ),
}

BROKEN_SCHEDULES = {
    "header": (
        ["step,kind"],
        ":1",
        "step,wait,kind,rank,peer,peer_step,peer_wait,bytes,seconds,runs",
    ),
    "kind": (["0,,sned,0,1,,,8,,"], ":2", "found 'sned'"),
    "rank": (["0,,send,0,1,,,8,,", "0,,send,x,1,,,8,,"], ":3", "column rank"),
    "peer": (["0,,send,0,,,,8,,"], ":2", "column peer"),
    "bytes": (["0,,send,0,1,,,3000000000,,"], ":2", "2147483647"),
    "seconds": (["0,,compute,0,,,,,-1,"], ":2", "column seconds"),
    "unsorted": (["1,,send,0,1,,,8,,", "0,,send,0,1,,,8,,"], ":3", "sorted by step"),
    "fields": (["0,send,0,1"], ":2", "found 4 fields"),
    "runs": (["0,,send,0,1,,,8,,4"], ":2", "column runs"),
    "run length": (["0,,send,0,1,,,8,,4+4;9+3"], ":2", "as many bytes as the message has"),
    "run address": (["0,,send,0,1,,,8,,-4+8"], ":2", "column runs"),
    "run end": (["0,,reduce,0,0,,,8,,9223372036854775807+8"], ":2", "column runs"),
    "result before a message": (
        ["0,,result,0,0,,,8,,0+8", "0,,send,0,1,,,8,,"],
        ":3",
        "only results after the first",
    ),
    "wait": (["3,2,send,0,1,,,8,,"], ":2", "column wait: found '2', wanted no step before"),
    "peer step": (["3,,send,0,1,x,,8,,"], ":2", "column peer_step"),
    "peer wait": (
        ["3,,send,0,1,5,4,8,,"],
        ":2",
        "column peer_wait: found '4', wanted no step before",
    ),
    "too many ranks": (["0,,send,0,7,,,8,,"], "cases.csv:2", "at least 8 ranks"),
}


def refused(result, *pieces):
    assert result.code != 0
    assert len(result.errors) == 1, result.err
    for piece in pieces:
        assert piece in result.errors[0]
    assert result.files() == []


def test_broken_case_files(real, at_once, tmp_path, write_schedule):
    write_schedule(tmp_path / "good.csv", [(0, "send", 0, 1, 8, "")])

    def check(number, name):
        program, text, place, reason = BROKEN_CASES[name]
        cases = tmp_path / f"{number}-cases.csv"
        cases.write_text(text)
        refused(real(2, program, cases, out=str(number)), place, reason)

    at_once(check, BROKEN_CASES)


def test_broken_schedules(real, at_once, tmp_path):
    def check(number, name):
        lines, place, reason = BROKEN_SCHEDULES[name]
        header = (
            []
            if name == "header"
            else ["step,wait,kind,rank,peer,peer_step,peer_wait,bytes,seconds,runs"]
        )
        (tmp_path / f"{number}.csv").write_text("\n".join(header + lines) + "\n")
        cases = tmp_path / f"{number}-cases.csv"
        cases.write_text(f"id,schedule,finish\na,{number}.csv,all\n")
        refused(real(2, "player", cases, out=str(number)), place, reason)

    at_once(check, BROKEN_SCHEDULES)


BROKEN_OPTIONS = {
    "--sync hope": "wanted window or barrier",
    "--precision fine": "--precision: found 'fine'",
    "--max-seconds 0": "above 0",
    "--max-samples 5": "at least --min-samples 10",
    "--min-sample 5": "unknown option '--min-sample'",
    "--seed": "found no value",
}


def test_broken_options(real, at_once):
    def check(number, options):
        result = real(2, "pingpong", "id,bytes\na,8", *options.split(), out=str(number))
        refused(result, BROKEN_OPTIONS[options])

    at_once(check, BROKEN_OPTIONS)


def test_too_few_ranks_for_the_program(real):
    refused(real(1, "pingpong", "id,bytes\na,8"), "found 1 ranks, wanted at least 2")


def test_a_simulated_refusal_is_an_error_too(simulated):
    """In SimGrid, MPI_Abort exits with code 0."""
    refused(simulated(2, "pingpong", "id,bytes\na,zero"), "column bytes: found 'zero'")


def test_placement(real, simulated, tmp_path):
    plan = tmp_path / "placement"
    plan.write_text("0\n0\n")
    assert real(2, "pingpong", "id,bytes\na,8", "--placement", plan, out="together").files() == [
        "a.csv"
    ]
    plan.write_text("0\n1\n")
    refused(
        real(2, "pingpong", "id,bytes\na,8", "--placement", plan, out="a"),
        "rank 1 should be on node 1",
        "both",
    )
    plan.write_text("0\n0\n0\n")
    refused(
        real(2, "pingpong", "id,bytes\na,8", "--placement", plan, out="b"),
        "3 ranks expected, but 2",
    )
    plan.write_text("0\n1\n2\n2\n")
    complaint = "rank 3 should be on node 2 like rank 2 (host n2), but is on host n3"
    refused(simulated(4, "pingpong", "id,bytes\na,8", "--placement", plan, out="c"), complaint)
    plan.write_text("0 n0\n1 n1\n2 n3\n3 n2\n")
    complaint = "rank 2 should be on n3, but is on n2"
    refused(simulated(4, "pingpong", "id,bytes\na,8", "--placement", plan, out="e"), complaint)
    plan.write_text("3 n0\n1 n1.domain\n2\n0 N3\n")
    assert simulated(4, "pingpong", "id,bytes\na,8", "--placement", plan, out="f").files() == [
        "a.csv"
    ]
    plan.write_text("5\n0\n2\n1\n")
    assert simulated(4, "pingpong", "id,bytes\na,8", "--placement", plan, out="d").files() == [
        "a.csv"
    ]


def test_a_world_of_one_is_distinguished_from_too_few_ranks(real, tmp_path):
    """With the launcher of another MPI, or srun without MPI support, each of two processes is rank
    0 of 1."""
    plan = tmp_path / "placement"
    plan.write_text("0\n1\n")
    refused(
        real(1, "pingpong", "id,bytes\na,8", "--placement", plan),
        "each of the 2 processes",
        "rank 0 of 1",
    )


def test_nothing_is_written_through_links(real, tmp_path):
    """Other users may have write access to the folder for samples."""
    target, samples = tmp_path / "away", tmp_path / "samples"
    target.write_text("precious")
    samples.mkdir()
    for name in (".a.tmp", "..now.tmp", ".now", ".meta.json.tmp"):
        (samples / name).symlink_to(target)
    done = real(2, "pingpong", "id,bytes\na,8", "--meta", samples / "meta.json")
    assert done.code == 0, done.err
    assert sorted(path.name for path in samples.iterdir()) == ["a.csv", "meta.json"]
    assert target.read_text() == "precious"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "elsewhere")
    refused(
        real(2, "pingpong", "id,bytes\na,8", out="linked"),
        "linked: found no folder or a link, wanted a folder",
    )


def test_the_file_that_names_the_case_stays_the_same_file(real, tmp_path):
    """Some file systems write a renamed file to disk immediately. With busy-waiting ranks this
    takes a second per case, so the file is overwritten in place."""
    samples = tmp_path / "samples"
    (samples / ".b.tmp" / "full").mkdir(parents=True)  # case b cannot be written
    (samples / ".now").write_text("an-older-name\n")
    before = (samples / ".now").stat().st_ino
    assert "samples/.b.tmp: cannot write" in real(2, "pingpong", "id,bytes\nb,8").err
    assert (samples / ".now").read_text() == f"{'b':13s}\n"
    assert (samples / ".now").stat().st_ino == before
    (samples / ".now").write_text("b\n")
    (tmp_path / "precious").hardlink_to(samples / ".now")
    assert "samples/.b.tmp: cannot write" in real(2, "pingpong", "id,bytes\nb,8").err
    assert (tmp_path / "precious").stat().st_ino == before != (samples / ".now").stat().st_ino
