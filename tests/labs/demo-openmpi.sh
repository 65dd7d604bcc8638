#!/usr/bin/env bash
# The whole demo with Debian's Open MPI, in copies of this clone: as who calls this and, if that is root, as a plain user.
set -euo pipefail

clone=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d "${TMPDIR:-/tmp}/demo-openmpi.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"

"$clone/tests/labs/openmpi.sh" "$work/openmpi"

demo() { # NAME COMMAND…
  local here=$work/$1/clone only=
  mkdir -p "$here"
  git -C "$clone" ls-files -z | tar -C "$clone" --null --ignore-failed-read -cf - -T - | tar -C "$here" -xf -
  ln -s "$clone/.venv" "$here/.venv"
  PYTHONPATH="$here/workflow" "$here/.venv/bin/python" -m commodel build replay >/dev/null # as `make setup` does
  [ ! -e "$clone/.simgrid" ] || ln -s "$clone/.simgrid" "$here/.simgrid"
  [ "$(id -u)" -ne 0 ] || [ "$1" = root ] || chown -R nobody "$work/$1"
  cd "$here"
  "$here/.venv/bin/commodel" doctor --need smpirun || only="--only local"
  # shellcheck disable=SC2086  # an option and its value, or nothing
  "${@:2}" env -u OMPI_ALLOW_RUN_AS_ROOT -u OMPI_ALLOW_RUN_AS_ROOT_CONFIRM HOME="$work/$1" PYTHONPATH="$here/workflow" \
    PATH="$work/openmpi/bin:$PATH" .venv/bin/python -m commodel run demo $only
  grep -q '"mpi": "Open MPI' results/demo/raw/local-*/*.json
  test -s reports/demo/demo.xlsx
  echo "demo-openmpi: ran as $1 with $(grep -ho 'Open MPI v[0-9.]*' results/demo/raw/local-*/*.json | sort -u)"
}

if [ "$(id -u)" -eq 0 ]; then
  demo root
  # Whose user number is all that Open MPI looks at; the Python of .venv may lie in root's home.
  demo plain setpriv --reuid=nobody --clear-groups --inh-caps=+dac_read_search --ambient-caps=+dac_read_search
else
  demo plain
fi
