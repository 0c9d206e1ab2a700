#!/bin/bash
# The Debian package: made twice, installed, run, updated, removed and purged in a Debian 12 of its own.
#
#   test/packaging/deb_test.sh BUILD_DIR
#
# The base system comes from the Debian mirror of this machine and is kept in
# BUILD_DIR/test/packaging/cache. Exit codes: 0 passed, 1 it did not, 2 usage, 77 skipped.
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
(($# == 1)) || {
  echo "usage: $0 BUILD_DIR" >&2
  exit 2
}
build=$(cd "$1" && pwd)
cache=$build/test/packaging/cache
passed=0

skip() {
  echo "skipped: $*"
  exit 77
}

fail() {
  echo "deb_test: $*" >&2
  exit 1
}

ok() {
  passed=$((passed + 1))
  echo "ok $*"
}

find_tools() {
  local tool
  ((EUID == 0)) || skip "only root can install packages into a folder"
  for tool in mmdebstrap:mmdebstrap dpkg-shlibdeps:dpkg-dev dpkg-deb:dpkg; do
    command -v "${tool%%:*}" >/dev/null || skip "${tool%%:*} is missing (package ${tool##*:})"
  done
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  root=$work/root
  export SOURCE_DATE_EPOCH=1700000000
}

# make FOLDER: prints the package's name.
make() {
  cpack --config "$build/CPackConfig.cmake" -B "$1" >"$work/cpack.log" 2>&1 ||
    fail "cpack: $(tail -n 5 "$work/cpack.log")"
  ls "$1"/*.deb
}

make_twice() {
  package=$(make "$work/one")
  cmp "$package" "$(make "$work/two")" || fail "made twice the packages differ"
  ok "made twice: the same $(stat -c %s "$package") bytes, $(basename "$package")"
}

# field NAME
field() { dpkg-deb -f "$package" "$1"; }

check_fields() {
  local name found
  [[ vfio-agent\ $(field Version) == "$("$build/vfio-agent" --version)" ]] || fail "Version: $(field Version)"
  for name in libc6 libpci3 libudev1 pci.ids; do
    [[ $(field Depends) =~ (^|, )$name( |,|$) ]] || fail "Depends: $(field Depends)"
  done
  [[ $(field Depends) != *libstdc++* ]] || fail "Depends: $(field Depends)"
  # Whatever the sources open by name.
  found=$(grep -rhoE 'dlopen\("[^"]+"' "$source_dir"/{sysfs,agent,deviceplugin,iommu} | cut -d'"' -f2) ||
    fail "no library that the sources open by name is found"
  while read -r name; do
    name=$(dpkg-query -S "*/$name" | cut -d: -f1 | head -n 1)
    [[ $(field Recommends) =~ (^|, )$name(,|$) ]] || fail "Recommends: $(field Recommends), and not $name"
  done <<<"$found"
  [[ $(dpkg-deb --info "$package" conffiles) == /etc/vfio-agent/config.yaml ]] || fail "conffiles"
  [[ -z $(dpkg-deb -c "$package" | awk '$2 != "root/root"') ]] || fail "files that are not root's"
  ok "fields: $(field Depends)"
}

# A small Debian with what the package depends on; made once for each list of dependencies.
make_root() {
  local names tar
  # procps has the `kill` of the unit; every Debian but the smallest has it.
  names=$(field Depends | sed -E 's/ *\([^)]*\)//g; s/ //g'),procps
  tar=$cache/bookworm-$(cksum <<<"$names" | cut -d' ' -f1).tar
  mkdir -p "$cache"
  if [[ ! -s $tar ]]; then
    mmdebstrap --quiet --variant=essential --include="$names" bookworm "$work/base.tar" \
      >"$work/mmdebstrap.log" 2>&1 ||
      skip "mmdebstrap could not make a Debian 12: $(tail -n 2 "$work/mmdebstrap.log")"
    mv "$work/base.tar" "$tar"
  fi
  mkdir "$root"
  tar -C "$root" --exclude='./dev/*' -xf "$tar"
  # What the maintainer's scripts ask the kernel.
  mkdir -p "$root/proc/sys/kernel/random"
  echo boot-of-the-test >"$root/proc/sys/kernel/random/boot_id"
  mknod -m 666 "$root/dev/null" c 1 3
  listing >"$work/before"
}

in_root() { LC_ALL=C chroot "$root" "$@"; }

# Everything but dpkg's own books.
listing() { (cd "$root" && find . -path ./var/lib/dpkg -prune -o -path ./var/log -prune -o -print | sort); }

check_install() {
  in_root dpkg -i /vfio-agent.deb >"$work/dpkg.log" 2>&1 || fail "dpkg -i: $(tail -n 5 "$work/dpkg.log")"
  [[ -z $(in_root dpkg --audit) ]] || fail "dpkg --audit: $(in_root dpkg --audit)"
  in_root dpkg --verify vfio-agent || fail "dpkg --verify"
  [[ $(in_root vfio-agent version) == "$("$build/vfio-agent" version)" ]] || fail "version"
  in_root vfio-agent config check >/dev/null || fail "the shipped configuration is not valid"
  [[ -z $(find "$root/etc/systemd" -lname '*vfio-agent*' 2>/dev/null) ]] || fail "it is enabled by itself"
  local name papers
  papers=(man/man8/vfio-agent.8.gz
    doc/vfio-agent/{copyright,changelog.gz,sbom.spdx.json,OPERATING.md,config.example.yaml}
    bash-completion/completions/vfio-agent zsh/vendor-completions/_vfio-agent
    fish/vendor_completions.d/vfio-agent.fish)
  for name in "${papers[@]}"; do
    [[ -s $root/usr/share/$name ]] || fail "/usr/share/$name is not there"
  done
  ok "installed: it runs, its configuration is valid, nothing is started"
}

check_unit() {
  command -v systemd-analyze >/dev/null || {
    echo "not tried: systemd-analyze (package systemd) is missing"
    return 0
  }
  systemd-analyze verify --man=no --recursive-errors=no --root="$root" vfio-agent.service >"$work/verify" 2>&1 ||
    fail "systemd-analyze verify: $(cat "$work/verify")"
  [[ ! -s $work/verify ]] || fail "systemd-analyze verify: $(cat "$work/verify")"
  systemd-analyze security --offline=true --root="$root" --threshold=45 --no-pager vfio-agent.service \
    >"$work/security" 2>&1 || fail "systemd-analyze security: $(tail -n 2 "$work/security")"
  ok "the unit: $(tail -n 1 "$work/security")"
}

check_plan() {
  "$build/test/sim/sim-node" --machine "$source_dir/test/machines/hgx-8gpu.yaml" --dump "$root/node"
  in_root vfio-agent plan --root /node >"$work/plan"
  rm -rf "$root/node"
  grep -q nvidia.com/GH100_H100_SXM5_80GB "$work/plan" || fail "plan: $(head -n 5 "$work/plan")"
  ok "plan, with names from pci.ids"
}

# What the administrator wrote stays, in an update and when the package is removed.
check_update() {
  echo '# mine' >>"$root/etc/vfio-agent/config.yaml"
  in_root dpkg -i /vfio-agent.deb >"$work/dpkg.log" 2>&1 || fail "update: $(tail -n 5 "$work/dpkg.log")"
  grep -q '# mine' "$root/etc/vfio-agent/config.yaml" || fail "the update took the configuration away"
  mkdir -p "$root/var/lib/vfio-agent/devices"
  echo '{"boot_id":"boot-of-the-test"}' >"$root/var/lib/vfio-agent/devices/0000:65:00.0.json"
  in_root dpkg -r vfio-agent >"$work/dpkg.log" 2>&1 || fail "dpkg -r: $(tail -n 5 "$work/dpkg.log")"
  [[ ! -e $root/usr/bin/vfio-agent ]] || fail "removed, and the program is still there"
  grep -q '# mine' "$root/etc/vfio-agent/config.yaml" || fail "remove took the configuration away"
  [[ -d $root/var/lib/vfio-agent/devices ]] || fail "remove took the journal away"
  ok "updated and removed: configuration and journal stay"
}

# purge_keeps REASON: installed once more and purged, it leaves the state directory and says why.
purge_keeps() {
  in_root dpkg -i /vfio-agent.deb >/dev/null 2>&1 || fail "installed again"
  in_root dpkg -P vfio-agent >"$work/dpkg.log" 2>&1 || fail "dpkg -P: $(tail -n 5 "$work/dpkg.log")"
  [[ -s $root/var/lib/vfio-agent/devices/0000:65:00.0.json ]] || fail "purge took the journal away, but $1"
  grep -q "$1" "$work/dpkg.log" || fail "purge does not say '$1'"
}

# Where it cannot be told whether the journal is of use, and where another agent uses it, it stays. The
# lock is of the kind that agents take, and the kernel's list is what it says while it is held.
check_doubt() {
  local boot_id=$root/proc/sys/kernel/random/boot_id state=$root/var/lib/vfio-agent
  mv "$boot_id" "$work/boot_id"
  purge_keeps 'which boot this is cannot be read'
  mv "$work/boot_id" "$boot_id"
  echo '{"boot_id":"an earlier one"}' >"$state/devices/0000:65:00.0.json"
  python3 -c '
import fcntl, os, shutil, struct, sys
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.fcntl(lock, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
shutil.copyfile("/proc/locks", sys.argv[2])' "$state/agent.lock" "$root/proc/locks"
  purge_keeps 'another agent works with it'
  rm "$root/proc/locks"
  purge_keeps 'another agent works with it'
  rm "$state/agent.lock"
  ok "purged where another agent has the state, or the boot is not known: it stays"
}

check_purge() {
  in_root dpkg -P vfio-agent >"$work/dpkg.log" 2>&1 || fail "dpkg -P: $(tail -n 5 "$work/dpkg.log")"
  [[ -s $root/var/lib/vfio-agent/devices/0000:65:00.0.json ]] ||
    fail "purge took the journal of bound devices away"
  grep -q 'devices are still bound' "$work/dpkg.log" || fail "purge says nothing of bound devices"
  check_doubt
  in_root dpkg -i /vfio-agent.deb >/dev/null 2>&1 || fail "installed again"
  echo '{"boot_id":"an earlier one"}' >"$root/var/lib/vfio-agent/devices/0000:65:00.0.json"
  in_root dpkg -P vfio-agent >"$work/dpkg.log" 2>&1 || fail "dpkg -P: $(tail -n 5 "$work/dpkg.log")"
  rm "$root/vfio-agent.deb"
  listing | diff "$work/before" - || fail "purged, and this is left or gone"
  ok "purged: nothing is left"
}

find_tools
make_twice
check_fields
make_root
cp "$package" "$root/vfio-agent.deb"
check_install
check_unit
check_plan
check_update
check_purge
echo "$passed passed, 0 failed"
