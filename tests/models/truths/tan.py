"""The LogGP machine with the parameters of TAN: L includes both overheads and the time of a
packet."""

from tests.models.synthetic import LOGGP, Truth, loggp_times

TRUTH = Truth(
    loggp_times(**LOGGP), {"L": LOGGP["o_s"] + LOGGP["L"] + LOGGP["o_r"] + 1023 * LOGGP["G"]}
)
