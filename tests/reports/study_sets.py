"""The parameter sets of the made-up study: five families on each platform, with curves, and values that are unsure."""

import numpy as np

from commodel.parameters import Curve, Estimate, ParameterSet


def make_parameters():
    sizes = tuple(float(4**power) for power in range(9))
    sets = []
    for platform, latency, per_byte in (("ether16", 3.1e-5, 8.6e-8), ("fattree", 1.7e-6, 2.4e-10)):
        line = tuple(latency + per_byte * size for size in sizes)
        noisy = tuple(value * (1 + 0.04 * (-1) ** place) for place, value in enumerate(line))
        curve = Curve("one-way time", "message size [B]", "one-way time [s]", sizes, noisy, line, "L + G·m", 0.9987)
        more = {"simulated": platform == "fattree", "bytes_range": (1.0, 65536.0)}
        where = {"batch": "probes-0", "commit": "4f2a91c", "date": "2026-10-02"}
        sets.append(
            ParameterSet(
                "loggp",
                platform,
                f"fitted from probes prtt on {platform}",
                {
                    "L": Estimate(latency, "s", latency * 0.97, latency * 1.04),
                    "o_s": Estimate(latency / 9, "s", latency / 10, latency / 8),
                    "o_r": Estimate(latency / 8, "s", latency / 9, latency / 7, "not told apart from L below 16 B"),
                    "g": Estimate(latency / 4, "s", latency / 4.1, latency / 3.9),
                    "G": Estimate(per_byte, "s/B", per_byte * 0.99, per_byte * 1.02),
                },
                curves=(curve,),
                provenance=where,
                **more,
            )
        )
        sets.append(
            ParameterSet(
                "hockney",
                platform,
                f"fitted from probes pingpong on {platform}",
                {
                    "alpha": Estimate(latency * 1.2, "s", latency, latency * 1.3),
                    "beta": Estimate(per_byte, "s/B", per_byte * 0.9, per_byte * 1.1),
                },
                curves=(curve,),
                provenance=where,
                **more,
            )
        )
        sets.append(
            ParameterSet(
                "pmnf",
                platform,
                "fitted from 40 observations",
                {
                    "t.c": Estimate(-latency / 2, "s", -latency, np.nan, "interval open above"),
                    "t.k": Estimate(2.0, "", 2.0, 2.0, "given as exact"),
                },
                forms={"t": "c·p^k·log2(p)"},
                provenance=where,
                **more,
            )
        )
        sets.append(sampled_set(platform, latency, per_byte, sizes, where, more))
        sets.append(
            ParameterSet("pram", platform, "needs no probe", {"gamma": Estimate(2e-10, "s/B", 1e-10, 3e-10)}, **more)
        )
    return sets


def sampled_set(platform, latency, per_byte, sizes, where, more):
    """A family with functions given by samples, one of them a surface, and two values that the data cannot tell."""
    unknown = "not told apart by these data, only together with g.a: its interval is as wide as its value"
    values = {
        "B_L": Estimate(1935.0, "1", 1801.0, 2003.0),
        "S": Estimate(8192.0, "B", 4096.0, 16384.0),
        "C": Estimate(3.14159e-7, "s", 0.0, 9.87654e-7, unknown, known=False),
        "g.a": Estimate(latency / 3, "s", latency / 4, latency / 2),
        "g.b": Estimate(per_byte / 3, "s/B", 0.0, per_byte, unknown, known=False),
        "L.thin.fat": Estimate(latency, "s", latency * 0.9, latency * 1.1),
    }
    for size in sizes:
        time = latency / 5 + size * per_byte
        values[f"o_s.{int(size)}"] = Estimate(time, "s", time * 0.98, time * 1.01)
    for size in (64, 4096):
        for level in (1, 2, 3):
            time = latency + level * size * per_byte
            values[f"L_1.{size}x{level}"] = Estimate(time, "s", time * 0.9, time * 1.1, known=level < 3)
    line = tuple(latency / 5 + size * per_byte for size in sizes)
    bent = tuple(value * (1 + 0.02 * np.sin(place)) for place, value in enumerate(line))
    curves = (
        Curve("o_s", "message / B", "time / s", sizes, line, line, "samples, linear in between", 1.0, -400.0, 0.031),
        Curve("g", "message / B", "time / s", sizes, bent, line, "a + b·x", 0.998, -61.25, 0.042),
        Curve("waiting", "ranks", "time / s", (2.0, 4.0, 8.0), (3e-6, 5e-6, 9e-6), (2.8e-6, 5e-6, 9.3e-6), "a·x", 0.99),
    )
    forms = {"o_s": "table", "L_1": "table", "g": "linear"}
    return ParameterSet(
        "plogp", platform, "fitted from probes prtt", values, forms, curves=curves, provenance=where, **more
    )
