#!/usr/bin/env bash
# Prepares this clone: system packages, .venv with the locked Python packages, an MPI, SimGrid. Safe to run again.
# With root, packages come by apt; without, SimGrid is unpacked into .simgrid and the rest has to be there.
set -euo pipefail
cd "$(dirname "$0")/.."

have() { command -v "$1" >/dev/null 2>&1; }
say() { printf 'setup: %s\n' "$*"; }

missing_packages() {
  grep -v '^#' envs/system-packages.txt | while read -r package; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || printf '%s\n' "$package"
  done
}

install_system_packages() {
  mapfile -t packages < <(missing_packages)
  [ "${#packages[@]}" -eq 0 ] && return
  say "installing ${packages[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq && apt-get install -qq -y --no-install-recommends "${packages[@]}" >/dev/null ||
    say "apt could not install all of them; commodel doctor tells what is missing"
}

# SimGrid and the libraries it needs that are not here, from Debian's packages into .simgrid/usr. Its two scripts name
# their own folder, so that is rewritten.
unpack_simgrid() {
  local work root
  root="$PWD/.simgrid"
  work="$root/download"
  mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
  local apt=(-o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache" -o Debug::NoLocking=1 -qq)
  say "unpacking SimGrid into .simgrid"
  apt-get "${apt[@]}" update
  apt-cache "${apt[@]}" depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
    --no-enhances libsimgrid-dev | grep '^[a-z0-9]' | sort -u | while read -r package; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || printf '%s\n' "$package"
  done >"$work/packages"
  (cd "$work" && xargs -n 1 apt-get "${apt[@]}" download <packages)
  for package in "$work"/*.deb; do dpkg -x "$package" "$root"; done
  sed -i -E "s#(-I|-L|\"|:)/usr/(include|lib)#\1$root/usr/\2#g" "$root/usr/bin/smpicc" "$root/usr/bin/smpirun"
  sed -i "s#-include\" \"/usr#-include\" \"$root/usr#g" "$root/usr/bin/smpicc"
  rm -rf "$work"
}

if have apt-get; then
  if [ "$(id -u)" -eq 0 ]; then
    install_system_packages
  elif ! have smpirun && [ ! -x .simgrid/usr/bin/smpirun ]; then
    unpack_simgrid || { rm -rf .simgrid; say "SimGrid could not be unpacked"; }
  fi
fi
have smpirun || [ -x .simgrid/usr/bin/smpirun ] || say "no SimGrid: simulated platforms are left out"
have cc || { say "no C compiler; install gcc, or load a compiler module"; exit 2; }

python=$(command -v python3)
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { say "python3 is too old, wanted 3.11 or newer"; exit 2; }
[ -x .venv/bin/python ] || "$python" -m venv .venv
pip=(.venv/bin/python -m pip --quiet --disable-pip-version-check)
say "installing the Python packages of envs/requirements.lock"
"${pip[@]}" --quiet install -r envs/requirements.lock
"${pip[@]}" install --no-deps --no-build-isolation -e .
if ! have mpicc; then
  say "no mpicc on PATH: installing MPICH"
  "${pip[@]}" install -r envs/mpi.lock
fi
say "ready"
