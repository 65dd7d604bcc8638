#!/usr/bin/env bash
# Apptainer without installing it, and an image from container.def without a container registry.
#
#   apptainer.sh tools          prints the folder that has an apptainer which works
#   apptainer.sh rootfs         prints the folder with a small Debian, made from the mirror that apt uses here
#   apptainer.sh image          prints the image of this clone as it is now
#   apptainer.sh build DEF SIF  builds another definition from that Debian
#
# All of it lies in $COMMODEL_LAB_CACHE (else commodel-lab in the user's cache folder), made once. Needs root: whoever
# is not builds with `make container`. Nothing of the system changes: debootstrap and apptainer work in folders of their
# own, in a user namespace in which root has every capability, also where this machine's root lacks some.
set -euo pipefail

lab=$(dirname "$(realpath "$0")")
clone=$(realpath "$lab/../..")
cache=${COMMODEL_LAB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/commodel-lab}
mkdir -p "$cache"
cache=$(realpath "$cache")
tools=$cache/apptainer
rootfs=$cache/rootfs
unset "${!APPTAINER_@}" # a site's options are for running images
work=$(mktemp -d "$cache/.work.XXXXXX")
trap 'rm -rf "$work"' EXIT

say() { printf 'apptainer lab: %s (%d s)\n' "$*" "$SECONDS" >&2; }

# Packages of this machine's suite, or of unstable as if nothing were installed, without touching apt's own state.
download() {
  local apt=(-qq -o APT::Sandbox::User=root)
  if [ "$1" = unstable ]; then
    local mirror=$work/unstable
    mkdir -p "$mirror/lists/partial" "$mirror/cache/archives/partial"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(mirror_here) unstable main" >"$mirror/sources"
    apt+=(-o "Dir::Etc::SourceList=$mirror/sources" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State=$mirror"
      -o Dir::State::Status=/dev/null -o "Dir::Cache=$mirror/cache" -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false)
  fi
  apt-get "${apt[@]}" update >&2
  shift
  apt-get "${apt[@]}" download "$@" >&2
}

# The first archive of Debian that apt knows here.
mirror_here() {
  apt-get indextargets --format '$(REPO_URI) $(RELEASE)' | awk '$2 !~ /security|updates/ { print $1; exit }'
}

packages() { grep -v '^#' "$lab/unpacked-apptainer.txt" | grep "$@" | sed 's#/.*##'; }

# apptainer finds its folders beside itself, its libraries by the path that is written into it.
make_tools() {
  local new=$work/tools private=$tools/private/usr/lib program libraries
  mkdir -p "$work/debs" "$work/newer" "$new"
  (cd "$work/debs" && packages -v /unstable | xargs bash -c 'download here "$@"' _)
  (cd "$work/newer" && packages /unstable | xargs bash -c 'download unstable "$@"' _)
  mv "$work"/newer/apptainer_*.deb "$work/debs"
  for program in "$work"/debs/*.deb; do dpkg -x "$program" "$new"; done
  for program in "$work"/newer/*.deb; do dpkg -x "$program" "$new/private"; done
  libraries=$(cd "$new/private/usr/lib" && echo *-linux-gnu*)
  for program in "$new/usr/bin/apptainer" "$new/usr/lib/$libraries/apptainer/bin/starter"; do
    "$new/usr/bin/patchelf" --force-rpath --set-rpath "$private/$libraries" \
      --set-interpreter "$private/$libraries/$(cd "$new/private/usr/lib/$libraries" && echo ld-linux-*)" "$program"
  done
  for program in mksquashfs unsquashfs squashfuse squashfuse_ll; do
    "$new/usr/bin/patchelf" --force-rpath --set-rpath "$tools/lib/$libraries:$tools/usr/lib/$libraries" \
      "$new/usr/bin/$program"
  done
  ln -s ../etc "$new/usr/etc"
  ln -s ../../etc "$new/usr/lib/etc"
  mkdir -p "$new/usr/var/lib/apptainer/mnt/session" "$new/usr/lib/var/lib/apptainer/mnt/session"
  mv "$new" "$tools"
  say "apptainer unpacked: $("$tools/usr/bin/apptainer" --version)"
}

# What this machine needs to reach the packages' mirrors is copied: the image's definition knows nothing of it.
make_rootfs() {
  local new=$work/rootfs suite
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  DEBOOTSTRAP_DIR=$tools/usr/share/debootstrap "$tools/usr/sbin/debootstrap" --variant=minbase \
    "$suite" "$new" "$(mirror_here)" >&2
  rm -rf "$new"/dev/* "$new"/var/cache/apt/archives/*.deb
  rm -f "$new/etc/apt/sources.list" # debootstrap's, which would name the mirror twice
  cp -a /etc/apt/sources.list* /etc/apt/apt.conf.d "$new/etc/apt/"
  cp -a /usr/share/keyrings/. "$new/usr/share/keyrings/"
  mkdir -p "$new/usr/local/share/ca-certificates"
  cp -a /usr/local/share/ca-certificates/. "$new/usr/local/share/ca-certificates/"
  [ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$new/etc/"
  mv "$new" "$rootfs"
  say "Debian $suite made"
}

build() {
  export PATH=$tools/usr/bin:$PATH APPTAINER_TMPDIR=$work APPTAINER_CONFIGDIR=$work/config
  mkdir -p "$work/config"
  (cd "$clone" && "$lab/asroot.py" apptainer --quiet build --warn-unused-build-args --mksquashfs-args '-comp lz4' \
    --build-arg BOOTSTRAP=localimage --build-arg "FROM=$rootfs" "$work/image.sif" "$1" >&2)
  mv "$work/image.sif" "$2"
}

# Named after what git tracks as it is now, so that another state is another image.
make_image() {
  local state
  state=$(cd "$clone" && { git rev-parse HEAD; git diff HEAD; } | sha256sum | cut -c 1-12)
  image=$cache/commodel-$state.sif
  [ -e "$image" ] && return
  find "$cache" -maxdepth 1 -name 'commodel-*.sif' -mtime +0 -delete # not those that others may be testing now
  build container.def "$image"
  say "image built: $(du -m "$image" | cut -f 1) MB"
}

[ "$(id -u)" -eq 0 ] || { echo "apptainer lab: needs root" >&2; exit 2; }
export -f download mirror_here
export work
exec 9>"$cache/.lock"
flock 9
[ -e "$tools" ] || make_tools
[ "$1" = tools ] && echo "$tools/usr/bin" && exit
[ -e "$rootfs" ] || make_rootfs
case $1 in
  rootfs) echo "$rootfs" ;;
  image)
    make_image
    echo "$image"
    ;;
  build) build "$(realpath "$2")" "$(realpath "$3")" ;;
  *) echo "apptainer lab: found '$*', wanted tools, rootfs, image or build DEF SIF" >&2; exit 2 ;;
esac
