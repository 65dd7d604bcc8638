# make demo: the main job. make test: the tests. make help: the rest.
COMMODEL := .venv/bin/commodel
READY := .venv/.ready
SETUP := $(wildcard envs/*) pyproject.toml

.PHONY: help setup demo demo-openmpi papers example test test-core test-slow test-random approve lab-test lab-network lab-kernels lab-paper lab-overlay lab-tune \
	fuzz container lint format size golden bench bench-million bench-campaign bench-heldout bench-networks bench-hierarchical bench-han bench-coverage bench-tune bench-order bench-default bench-alltoall \
	bench-workbook axe partitions schemas map pages docs wheel release clean

help:
	@echo "make setup    prepare .venv/bin/commodel"
	@echo "make demo     run params/experiments/demo.yaml and write reports/demo"
	@echo "make demo-openmpi  the same with Debian's Open MPI in place of the MPI at hand, by root as a plain user too"
	@echo "make papers   the figures of the papers rebuilt, a report each; PAPER=cluster: one of them"
	@echo "make example  write reports/example again, the sample that is committed"
	@echo "make test     all tests but those of test-slow"
	@echo "make test-core  the tests of the core in a copy without our extensions: 7 minutes; QUICK=yes: contracts and a campaign, half a minute"
	@echo "make test-slow  the slow tests of the same behaviour: minutes"
	@echo "make approve  write the approved report of the tests again, tests/reports/recorded/approved.json"
	@echo "make lab-test real clusters on this machine: Slurm, and what else tests/labs has; needs root"
	@echo "make lab-network  the campaign over eight hosts at 100 Mbit/s, in network namespaces: ten minutes, needs root; EXPERIMENT=netns-hier: leaders"
	@echo "make lab-kernels  SUMMA and the wave equation there at 1 Gbit/s, one host slowed down: ten minutes, needs root"
	@echo "make lab-paper  figures of the cluster model's paper in the same lab, where TCP loses packets; PAPER=lop: 5 minutes, needs root"
	@echo "make lab-overlay  trees of the TAN and MRNet papers on an overlay network over 600 hosts at 4 Mbit/s: a quarter of an hour, needs root"
	@echo "make lab-tune  rules for Open MPI's collectives over the eight hosts, and what they gain: 8 minutes, needs root"
	@echo "make fuzz     hostile files for every reader, five minutes (SECONDS=…, SEED=…); what fails is kept in build/fuzz"
	@echo "make lint     ruff, mypy, snakefmt, snakemake --lint, compiler warnings as errors"
	@echo "make axe PAGE=…  accessibility of a report's page, by axe-core in Chromium: wide, narrow, dark, filtered; needs npm"
	@echo "make size     files and tokens of the core, the extensions, the native programs and the tests, by folder"
	@echo "make golden   compare numbers with those of an earlier checkout: TASK=record there, TASK=compare here; GOLDEN=DIR"
	@echo "make bench    speed, as ratios measured in one run"
	@echo "make bench-million  a million predictions in one process: minutes"
	@echo "make bench-campaign  overhead of 20,000 simulated points in 40 batches: minutes"
	@echo "make bench-workbook  time, memory and size of workbook and page of 200,000 comparison rows: a minute"
	@echo "make bench-networks  errors of the models on simulated networks of several levels; TABLE=T.csv, too: minutes"
	@echo "make bench-hierarchical  hierarchical algorithms against flat ones on simulated fat nodes, predicted and measured: minutes"
	@echo "make bench-han  pipelines through leaders: HAN's tasks against models fitted to probes, on the same clusters: minutes"
	@echo "make bench-heldout TABLE=T.csv  errors at held-out sizes, ranks and allocations of the table (FAMILIES, RANKS, STATISTIC): minutes a model"
	@echo "make bench-coverage  coverage and width of prediction intervals; TABLE=T.csv, too: minutes"
	@echo "make bench-default DATA=FOLDER  predictions of the MPI default at held-out points (SPLIT=largest, next, …, all): seconds to minutes"
	@echo "make bench-alltoall DATA=FOLDER  measured variants of alltoall, predicted from probes alone: half an hour"
	@echo "make bench-tune TABLE=T.csv  points to be measured until the choice of algorithms costs 5 %: minutes"
	@echo "make bench-order TABLE=T.csv  regret of the advice while a campaign measures, by the order of its batches: a minute"
	@echo "make container  the container image build/commodel.sif, with Apptainer"
	@echo "make partitions  balance the kernels of the τ–Lop paper over its layouts again: params/partitions/fermi"
	@echo "make schemas  write workflow/schemas from the Python models"
	@echo "make map      draw the map of the packages in CONTRIBUTING.md again"
	@echo "make pages    write constants of the code into docs"
	@echo "make docs     build docs/ as a site in build/docs; a warning is an error"
	@echo "make wheel    build/dist/*.whl, checked; a wheel has all that a cluster's users share"
	@echo "make release  build/release: distributions, checked, and notes from CHANGELOG.md; uploads nothing"
	@echo "make clean    remove what was built and generated, but not .venv"

setup: $(READY)

$(READY): $(SETUP)
	bash envs/bootstrap.sh
	$(COMMODEL) build replay
	@touch $@

# Where SimGrid cannot be had, only the part of the demo that runs on this machine is left.
demo: $(READY)
	@if $(COMMODEL) doctor --need smpirun; then $(COMMODEL) run demo; \
	else echo "no SimGrid here: running only the part of the demo that measures this machine"; \
	$(COMMODEL) run demo --only local; fi

demo-openmpi: $(READY)
	bash tests/labs/demo-openmpi.sh

# Another paper's report is written also where one cannot be.
papers: $(READY)
	@failed=; for file in params/experiments/paper-$(or $(PAPER),*).yaml; do \
	$(COMMODEL) run "$$(basename "$$file" .yaml)" || failed="$$failed $$file"; done; \
	[ -z "$$failed" ] || { echo "papers: not rebuilt:$$failed" >&2; exit 1; }

# A report that everybody may see: without the names of machines.
example: $(READY)
	$(COMMODEL) run sample
	$(COMMODEL) report --in results/sample --out reports/example --anonymous

# Each of pytest's processes would compile all tests again where Python is told to keep nothing that it compiled.
test test-slow test-random lab-test: export PYTHONDONTWRITEBYTECODE =
test test-slow test-random: export OPENBLAS_NUM_THREADS = 1

# pytest would load all other files too, to find nothing in them.
ALONE_TESTS = $(shell grep -lr --include='test_*.py' 'mark\.alone' tests)

# What needs good times of a real measurement has the machine to itself; the rest, simulations too, runs three at a
# time, as tests wait for what they start: whole files, which make what their tests share once, the longest first.
test: $(READY)
	$(COMMODEL) build replay
	$(COMMODEL) build mpi
	$(COMMODEL) build overlay
	! $(COMMODEL) doctor --need smpicc || $(COMMODEL) build smpi
	.venv/bin/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m 'not lab and not alone and not slow'
	.venv/bin/python -m pytest -m 'alone and not lab' $(ALONE_TESTS)

# The rooms of the core, in a copy without our own extensions.
test-core: $(READY)
	.venv/bin/python -m tests.core_alone $(if $(QUICK),--quick) -n 3 --dist loadfile --no-loadscope-reorder -m 'not lab and not alone and not slow'

# The same at more length: intervals over hundreds of machines, stories told by plain Snakemake as well.
test-slow: $(READY)
	.venv/bin/python -m pytest -n 2 --dist loadfile -m 'slow and not lab'

approve: $(READY)
	COMMODEL_APPROVE=yes .venv/bin/python -m pytest tests/reports/test_approved.py
	git diff --stat -- tests/reports/recorded

# Properties alone, with examples that nobody has seen yet.
test-random: $(READY)
	.venv/bin/python -m pytest -n 2 --dist worksteal -m 'hypothesis and not lab and not alone' --hypothesis-profile random

# Each lab says why it is skipped where something is missing. `make lab-test LAB=slurm`, or snakedeploy, outages, apptainer, gridengine, network: one. SLOW=yes: its slow tests, too.
# Tests on Slurm mostly wait: three run at a time, each on a Slurm of its own. The one that needs good times runs after them.
LAB_TESTS = $(or $(wildcard tests/labs/test_$(LAB)*.py),$(error no lab '$(LAB)' in tests/labs: wanted LAB=slurm, snakedeploy, outages, apptainer, gridengine or network))
LAB_MARKS = lab$(if $(SLOW),, and not slow)
lab-test: $(READY)
	@: $(LAB_TESTS)
	@if [ "$$(id -u)" -eq 0 ]; then sh tests/labs/packages.sh $(LAB); fi
	.venv/bin/python -m pytest -m '$(LAB_MARKS)$(if $(filter slurm,$(LAB)), and not alone' -n 3 --maxschedchunk 1,') $(LAB_TESTS)
	$(if $(filter slurm,$(LAB)),.venv/bin/python -m pytest -m '$(LAB_MARKS) and alone' $(LAB_TESTS))

lab-network: $(READY)
	rm -rf build/lab-network
	.venv/bin/python -m tests.labs.campaign build/lab-network $(EXPERIMENT)

lab-kernels: $(READY)
	rm -rf build/lab-kernels
	.venv/bin/python -m tests.labs.kernels build/lab-kernels

# The report is in build/lab-paper/project/reports; PAPER=lop: of another paper.
lab-paper: $(READY)
	@: $(or $(wildcard params/experiments/paper-$(or $(PAPER),cluster).yaml),$(error no paper '$(PAPER)': wanted one of $(patsubst params/experiments/paper-%.yaml,%,$(wildcard params/experiments/paper-*.yaml))))
	rm -rf build/lab-paper
	.venv/bin/python -m tests.labs.campaign build/lab-paper paper-$(or $(PAPER),cluster)

# The report is in build/lab-overlay/project/reports.
lab-overlay: $(READY)
	rm -rf build/lab-overlay
	$(COMMODEL) build overlay
	.venv/bin/python -m tests.labs.overlay_trees build/lab-overlay

lab-tune: $(READY)
	rm -rf build/lab-tune
	.venv/bin/python -m tests.labs.tune build/lab-tune

SECONDS := 300
fuzz: $(READY)
	.venv/bin/python -m tests.fuzz --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

lint: $(READY)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/snakefmt --check Snakefile workflow/Snakefile workflow/rules
	.venv/bin/python -m tests.snakelint
	.venv/bin/mypy
	$(COMMODEL) build mpi
	$(COMMODEL) build overlay

golden: $(READY)
	.venv/bin/python -m tests.golden $(or $(TASK),compare) $(or $(GOLDEN),build/golden-recorded)

format: $(READY)
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .
	.venv/bin/snakefmt Snakefile workflow/Snakefile workflow/rules

# Only here is npm asked for anything; nothing of it is shipped.
axe: $(READY)
	@command -v npm chromium > /dev/null || { echo "axe: wanted npm and chromium on PATH" >&2; exit 2; }
	npm install --prefix build/axe --no-audit --no-fund --silent axe-core@4.10.3
	.venv/bin/python -m tests.labs.axe $(or $(PAGE),reports/demo/index.html)

size: $(READY)
	.venv/bin/python tests/size.py

bench: $(READY)
	.venv/bin/python -m benchmarks.predicting
	.venv/bin/python -m benchmarks.campaign
	.venv/bin/python -m benchmarks.answers
	.venv/bin/python -m benchmarks.overlay
	.venv/bin/python -m benchmarks.kernels
	.venv/bin/python -m benchmarks.goal_scale

bench-million: $(READY)
	.venv/bin/python -m benchmarks.million

bench-campaign: $(READY)
	.venv/bin/python -m benchmarks.overhead

bench-workbook: $(READY)
	.venv/bin/python -m benchmarks.workbook

bench-heldout: $(READY)
	@test -r "$(TABLE)" || { echo "bench-heldout: found no table '$(TABLE)', wanted TABLE=T.csv as commodel import writes it" >&2; exit 2; }
	.venv/bin/python -m benchmarks.heldout $(TABLE) $(FAMILIES) $(if $(RANKS),--ranks $(RANKS)) $(if $(STATISTIC),--statistic "$(STATISTIC)")

bench-default: $(READY)
	@test -d "$(DATA)" || { echo "bench-default: found no folder '$(DATA)', wanted DATA=FOLDER with measured collectives" >&2; exit 2; }
	.venv/bin/python -m benchmarks.mpi_default $(DATA) $(if $(SPLIT),--split "$(SPLIT)")

bench-alltoall: $(READY)
	@test -d "$(DATA)" || { echo "bench-alltoall: found no folder '$(DATA)', wanted DATA=FOLDER with measured variants of alltoall" >&2; exit 2; }
	.venv/bin/python -m benchmarks.alltoall_variants $(DATA)

bench-hierarchical: export OMP_NUM_THREADS = 1
bench-hierarchical: $(READY)
	.venv/bin/python -m benchmarks.hierarchical $(PLATFORMS)

bench-han: export OMP_NUM_THREADS = 1
bench-han: $(READY)
	.venv/bin/python -m benchmarks.han_tasks $(PLATFORMS)

bench-networks: $(READY)
	@test -z "$(TABLE)" -o -r "$(TABLE)" || { echo "bench-networks: found no table '$(TABLE)'" >&2; exit 2; }
	.venv/bin/python -m benchmarks.networks $(PLATFORMS)
	$(if $(TABLE),$(MAKE) bench-heldout)

# Threads of its linear algebra only stand in each other's way.
bench-tune: export OMP_NUM_THREADS = 1
bench-tune: $(READY)
	@test -r "$(TABLE)" || { echo "bench-tune: found no table '$(TABLE)', wanted TABLE=T.csv as commodel import writes it" >&2; exit 2; }
	.venv/bin/python -m benchmarks.tune $(TABLE)

bench-order: export OMP_NUM_THREADS = 1
bench-order: $(READY)
	@test -r "$(TABLE)" || { echo "bench-order: found no table '$(TABLE)', wanted TABLE=T.csv as commodel import writes it" >&2; exit 2; }
	.venv/bin/python -m benchmarks.batch_order $(TABLE)

# Simulated only, so that everybody gets the same numbers.
COVERAGE := demo families catalogue sample
bench-coverage: $(READY)
	for name in $(COVERAGE); do $(COMMODEL) run $$name --only fast-ethernet-32 || exit 1; done
	$(COMMODEL) run benchmarks/coverage.yaml
	.venv/bin/python -m benchmarks.coverage $(addprefix results/,$(COVERAGE) coverage)

# KERNEL-N/LAYOUT.csv, made again where the speeds have changed.
BALANCED := $(foreach kernel,summa-128 summa-256 wave2d-256 wave2d-512,$(patsubst params/layouts/fermi/%,\
	params/partitions/fermi/$(kernel)/%,$(wildcard params/layouts/fermi/*.csv)))
partitions: $(BALANCED)
params/partitions/fermi/%.csv: params/speeds/fermi.yaml
	@mkdir -p $(@D)
	$(COMMODEL) partition --speeds $< --platform fermi --kernel $(if $(findstring wave,$*),wave,gemm) \
	--blocks $(lastword $(subst -, ,$(notdir $(@D)))) --layout processes:params/layouts/fermi/$(notdir $*).csv -o $@

schemas: $(READY)
	.venv/bin/python -m commodel.plan.config workflow/schemas

map:
	.venv/bin/python -m tests.packages

pages: $(READY)
	.venv/bin/python -m tests.doc_values

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --quiet --strict

# setuptools keeps what it built last, also files that are gone since.
wheel: $(READY)
	rm -rf build/lib build/dist
	.venv/bin/python -m build --quiet --wheel --no-isolation --outdir build/dist
	.venv/bin/twine check --strict build/dist/*

# The wheel is built from the source distribution, which shows that this is complete. Nothing is uploaded.
release: $(READY)
	rm -rf build/lib build/release
	.venv/bin/python -m build --quiet --no-isolation --outdir build/release
	.venv/bin/twine check --strict build/release/*
	.venv/bin/python packaging/release.py build/release

# CONTAINER_BUILD takes the builder's own options, e.g. '--build-arg BOOTSTRAP=localimage --build-arg FROM=rootfs'.
container:
	@mkdir -p build
	@builder=$$(command -v apptainer || command -v singularity) || { \
	echo "commodel: no apptainer or singularity on PATH: load your cluster's module, or install the package apptainer" >&2; \
	exit 2; }; $$builder build --force $(CONTAINER_BUILD) build/commodel.sif container.def

clean:
	rm -rf build results .snakemake $(filter-out reports/example,$(wildcard reports/*))
