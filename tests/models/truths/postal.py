"""The LogGP machine with the parameters of Postal: a message of one byte takes λ gaps."""

from tests.models.synthetic import LOGGP, Truth, loggp_times

ONE_WAY = LOGGP["o_s"] + LOGGP["L"] + LOGGP["o_r"]
TRUTH = Truth(loggp_times(**LOGGP), {"lam": ONE_WAY / LOGGP["g"], "g": LOGGP["g"]})
