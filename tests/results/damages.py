"""Damaged contents of a batch's state.json: after a full disk, another program, or an edit."""

import json

ATTEMPT = {
    "host": "n1",
    "pid": 7,
    "job": "41",
    "started": 1e9,
    "updated": 1e9 + 60,
    "ended": None,
    "outcome": "",
}


def _state(**changed: object) -> bytes:
    return json.dumps({"attempts": [ATTEMPT | changed]}).encode()


DAMAGES = {
    "nothing": b"",
    "truncated": _state()[:-20],
    "a list": b"[" + _state() + b"]",
    "no attempts": b'{"pass": 1}',
    "attempts that are a number": b'{"attempts": 3}',
    "an attempt that is a number": b'{"attempts": [3]}',
    "a missing key": json.dumps({"attempts": [{"host": "n1", "ended": None}]}).encode(),
    "a text for a number": _state(started="yesterday"),
    "a number for a text": _state(host=3),
    "a time that is none": _state(ended=float("nan")),
    "a time beyond all calendars": _state(updated=1e300),
    "a process that cannot be": _state(pid=-(10**30)),
    "passes without end": json.dumps({"attempts": [ATTEMPT], "pass": 10**9}).encode(),
    "not UTF-8": _state(host="HOST").replace(b"HOST", b"n\xff"),
    "zeroes": bytes(4096),
    "too deep": b"[" * 100_000,
}
