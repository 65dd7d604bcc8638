"""What a results folder says need not be said again."""


def test_a_results_folder_is_enough(finished):
    results, reports = finished.folder / "results/small", finished.folder / "reports/small"
    written = [results / "observations.csv", reports / "small.xlsx", reports / "index.html"]
    before = written[0].read_bytes()
    for path in written:
        path.unlink()
    for verb in ("collect", "report"):
        finished.verb(verb, "--in", "results/small")
    assert written[0].read_bytes() == before
    assert all(path.stat().st_size for path in written)
