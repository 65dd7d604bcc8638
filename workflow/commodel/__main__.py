"""`python -m commodel`, for the workflow's rules: no PATH needed."""

from commodel.cli import main

main(prog_name="commodel")
