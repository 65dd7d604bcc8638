"""The LogGP machine with the parameters of Hockney."""

from tests.models.synthetic import LOGGP, Truth, loggp_times

TRUTH = Truth(
    loggp_times(**LOGGP),
    {"alpha.a": LOGGP["o_s"] + LOGGP["L"] + LOGGP["o_r"], "beta.a": LOGGP["G"]},
)
