#!/usr/bin/env bash
# Debian's Open MPI in a private folder, so that no other mpicc or mpirun comes on anybody's PATH.
#
#   openmpi.sh FOLDER       unpacks it; FOLDER/bin has mpicc, mpirun, mpiexec and orted. What is there already is kept.
#
# Settings of the site are read from FOLDER/etc/openmpi-mca-params.conf.
set -euo pipefail

packages="openmpi-bin openmpi-common libopenmpi3 libopenmpi-dev libpmix2 libhwloc15 libevent-core-2.1-7
  libevent-pthreads-2.1-7 libmunge2 libnl-3-200 libnl-route-3-200"
mkdir -p "$1"
folder=$(realpath "$1")
[ -x "$folder/bin/mpirun" ] && exit 0
work=$(mktemp -d "$folder/.unpack.XXXXXX")
trap 'rm -rf "$work"' EXIT

cd "$work"
# shellcheck disable=SC2086  # a list
apt-get -qq -o APT::Sandbox::User=root download $packages
for package in *.deb; do dpkg -x "$package" "$folder"; done

triplet=$(basename "$(dirname "$(find "$folder/usr/lib" -maxdepth 2 -name openmpi -type d)")")
mkdir -p "$folder/bin" "$folder/etc"
# Drivers of other networks are not unpacked; on other hosts the daemon is started by the wrapper below.
cat >"$folder/etc/openmpi-mca-params.conf" <<EOF
mca_base_component_show_load_errors = 0
orte_launch_agent = $folder/bin/orted
EOF
# A daemon that an agent starts on another host gets no environment from here, so each program brings its own.
wrapper() {
  cat >"$work/$1" <<EOF
#!/bin/sh
export OPAL_PREFIX=$folder/usr OPAL_SYSCONFDIR=$folder/etc
export PMIX_INSTALL_PREFIX=$folder/usr/lib/$triplet/pmix2 PMIX_MCA_pcompress_base_silence_warning=1
export LD_LIBRARY_PATH=$folder/usr/lib/$triplet/openmpi/lib:$folder/usr/lib/$triplet:$folder/lib/$triplet\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
exec $folder/usr/bin/$2 "\$@"
EOF
  chmod 755 "$work/$1"
  mv "$work/$1" "$folder/bin/$1"
}
wrapper mpicc mpicc.openmpi
wrapper orted orted
wrapper mpiexec mpirun.openmpi
wrapper mpirun mpirun.openmpi
