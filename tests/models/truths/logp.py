"""The LogGP machine with the parameters of LogP."""

from tests.models.synthetic import LOGGP, Truth, loggp_times

TRUTH = Truth(
    loggp_times(**LOGGP), {"o": (LOGGP["o_s"] + LOGGP["o_r"]) / 2, "L": LOGGP["L"], "g": LOGGP["g"]}
)
