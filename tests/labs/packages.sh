#!/bin/sh
# Installs the Debian packages that a lab names in packages-LAB.txt: packages.sh [LAB]. None of their services is started.
# What a lab only unpacks, since it must not lie in the system, is named in unpacked-LAB.txt, and not touched here.
set -eu
cd "$(dirname "$0")"
[ -e "packages-${1:-slurm}.txt" ] || exit 0
command -v apt-get >/dev/null || exit 0
missing=$(sed '/^#/d' "packages-${1:-slurm}.txt" | while read -r package; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || printf '%s ' "$package"
done)
[ -z "$missing" ] && exit 0
printf 'lab: installing %s\n' "$missing"
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -qq -y --no-install-recommends $missing >/dev/null
