# make demo: the main job. make test: all tests. make help: the rest.
COMMODEL := .venv/bin/commodel
READY := .venv/.ready
SETUP := $(wildcard envs/*) pyproject.toml

# Progress goes to the terminal, not to log files; batches start containers themselves; names of an experiment's folders
# are no parameters.
LINT_ACCEPTED := No log directive|Specify a conda environment|Shell command directly uses variable

.PHONY: help setup demo demo-openmpi example test lab-test lab-network fuzz container lint format bench bench-million \
	bench-campaign bench-heldout schemas map clean

help:
	@echo "make setup    prepare .venv/bin/commodel"
	@echo "make demo     run params/experiments/demo.yaml and write reports/demo"
	@echo "make demo-openmpi  the same with Debian's Open MPI in place of the MPI at hand, by root as a plain user too"
	@echo "make example  write reports/example again, the sample that is committed"
	@echo "make test     all tests"
	@echo "make lab-test real clusters on this machine: Slurm, and what else tests/lab has; needs root"
	@echo "make lab-network  the campaign over eight hosts at 100 Mbit/s, in network namespaces: ten minutes, needs root"
	@echo "make fuzz     hostile files for every reader, five minutes (SECONDS=…, SEED=…); what fails is kept in build/fuzz"
	@echo "make lint     ruff, snakefmt, snakemake --lint, compiler warnings as errors"
	@echo "make bench    speed, as ratios measured in one run"
	@echo "make bench-million  a million prices in one process: minutes"
	@echo "make bench-campaign  what 20,000 simulated points in 40 batches cost beside their work: minutes"
	@echo "make bench-heldout TABLE=T.csv  which families predict measured collectives they have not seen: up to an hour"
	@echo "make container  the container image build/commodel.sif, with Apptainer"
	@echo "make schemas  write workflow/schemas from the Python models"
	@echo "make map      draw the map of the rooms in CONTRIBUTING.md again"
	@echo "make clean    remove what was built and generated, but not .venv"

setup: $(READY)

$(READY): $(SETUP)
	bash envs/bootstrap.sh
	@touch $@

# Where SimGrid cannot be had, only the part of the demo that runs on this machine is left.
demo: $(READY)
	@if $(COMMODEL) doctor --need smpirun; then $(COMMODEL) run demo; \
	else echo "no SimGrid here: running only the part of the demo that measures this machine"; \
	$(COMMODEL) run demo --only local; fi

demo-openmpi: $(READY)
	bash tests/lab/demo-openmpi.sh

# A report that everybody may see: without the names of machines.
example: $(READY)
	$(COMMODEL) run sample
	$(COMMODEL) report --in results/sample --out reports/example --anonymous

# What measures for real has the machine to itself; the rest, simulations too, runs two at a time, the longest files first.
test: $(READY)
	$(COMMODEL) build mpi
	! $(COMMODEL) doctor --need smpicc || $(COMMODEL) build smpi
	.venv/bin/python -m pytest -n 2 --dist worksteal -m 'not lab and not alone'
	.venv/bin/python -m pytest -m alone

# Each lab says why it is skipped where something is missing. `make lab-test LAB=slurm`, or outages, apptainer, network: one.
LAB_TESTS = $(or $(wildcard tests/lab/test_$(LAB)*.py),$(error no lab '$(LAB)' in tests/lab: wanted LAB=slurm, outages, apptainer or network))
lab-test: $(READY)
	@: $(LAB_TESTS)
	@if [ "$$(id -u)" -eq 0 ]; then sh tests/lab/packages.sh $(LAB); fi
	.venv/bin/python -m pytest -m lab $(LAB_TESTS)

lab-network: $(READY)
	rm -rf build/lab-network
	.venv/bin/python -m tests.lab.campaign build/lab-network

SECONDS := 300
fuzz: $(READY)
	.venv/bin/python -m tests.fuzz --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

lint: $(READY)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/snakefmt --check Snakefile workflow/rules
	@! .venv/bin/snakemake --lint 2>&1 | grep '^    \* ' | grep -vE "$(LINT_ACCEPTED)"
	@! .venv/bin/snakemake --lint --snakefile workflow/rules/price.smk --config experiment=E 'params=["P"]' out=O parts=2 \
		2>&1 | grep '^    \* ' | grep -vE "$(LINT_ACCEPTED)"
	$(COMMODEL) build mpi

format: $(READY)
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .
	.venv/bin/snakefmt Snakefile workflow/rules

bench: $(READY)
	.venv/bin/python tests/bench/pricing.py
	.venv/bin/python tests/bench/campaign.py

bench-million: $(READY)
	.venv/bin/python tests/bench/million.py

bench-campaign: $(READY)
	.venv/bin/python tests/bench/overhead.py

bench-heldout: $(READY)
	.venv/bin/python tests/bench/heldout.py $(TABLE)

schemas: $(READY)
	.venv/bin/python -m commodel.plan.config workflow/schemas

map:
	.venv/bin/python -m tests.rooms

# CONTAINER_BUILD takes the builder's own options, e.g. '--build-arg BOOTSTRAP=localimage --build-arg FROM=rootfs'.
container:
	@mkdir -p build
	@builder=$$(command -v apptainer || command -v singularity) || { \
	echo "commodel: no apptainer or singularity on PATH: load your cluster's module, or install the package apptainer" >&2; \
	exit 2; }; $$builder build --force $(CONTAINER_BUILD) build/commodel.sif container.def

clean:
	rm -rf build results .snakemake $(filter-out reports/example,$(wildcard reports/*))
