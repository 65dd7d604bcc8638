"""`commodel advise` as a user would type it."""

LOGGP = ("L=20us", "o_s=5us", "o_r=5us", "g=10us", "G=80ns", "gamma=1ns")
JOB = "--operation allreduce --ranks 8 --bytes 1KiB"
JOBS = "--operation allreduce --ranks 2:8:*2 --bytes 8,64KiB"
