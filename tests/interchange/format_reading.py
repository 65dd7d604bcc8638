"""Samples of every installed format, and functions that read a text as a file of a format."""

from importlib import import_module
from pathlib import Path

from commodel.interchange import StatedProperties, read_all_times
from commodel.interchange.csv import NAMES
from commodel.registry import discover

FORMATS = discover("interchange", "FORMAT")


def read(name, folder, text, **given):
    path = folder / "file.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_all_times(FORMATS[name], [path], StatedProperties(**given))


READ = sorted(name for name, entry in FORMATS.items() if entry.read_times)


def list_samples():
    """Return the samples of the installed formats, which the tests of their packages have."""
    samples = {}
    for path in sorted(Path(__file__).parents[1].glob("*/samples.py")):
        samples |= import_module(f"tests.{path.parent.name}.samples").SAMPLES
    return {name: samples[name] for name in READ}


SAMPLES = list_samples()


def times(table):
    """Return the times of a table without their positions in the file."""
    return [tuple(getattr(time, name) for name in NAMES) for time in table.times]


def list_statistics(table):
    """Return the times of a table in microseconds, each with its statistic and its repetitions."""
    return [
        (round(time.seconds * 1e6, 6), time.statistic, time.repetitions) for time in table.times
    ]
