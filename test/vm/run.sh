#!/bin/bash
# Boots Debian's kernel in QEMU and runs the real vfio-agent inside, as root: see README.md.
#
#   test/vm/run.sh BUILD_DIR [PATTERN]     PATTERN: a regular expression; only cases that match
#
# Exit codes: 0 all cases passed, 1 one did not, 2 usage, 77 skipped (the reason is printed).
# VFIO_AGENT_VM_CACHE: where kernel and base image are kept (default BUILD_DIR/test/vm/cache).
set -u -o pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$source_dir/host/machine.sh"
. "$source_dir/host/kernel.sh"
. "$source_dir/host/module.sh"
. "$source_dir/host/image.sh"
. "$source_dir/host/boot.sh"

suites=(cases cases-noiommu)
boot_seconds=2700
# The tail of the console that is worth reading when something failed.
console_lines=200

skip() {
  echo "skipped: $*"
  exit 77
}

usage() {
  echo "usage: $0 BUILD_DIR [PATTERN]" >&2
  exit 2
}

clean_up() {
  [[ -n ${qemu:-} ]] && kill -KILL "$qemu" 2>/dev/null
  rm -f "$image"
}

find_tools() {
  local tool
  for tool in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio depmod:kmod \
    strip:binutils; do
    command -v "${tool%%:*}" >/dev/null || skip "${tool%%:*} is missing (package ${tool##*:})"
  done
  [[ -e /usr/share/misc/pci.ids ]] || skip "pci.ids is missing (package pci.ids)"
}

find_programs() {
  programs=("$build/vfio-agent" "$build/test/kubelet/fake-kubelet"
    "$build/test/apiserver/fake-apiserver" "$build/test/privileges/pod-run" "$work/vfio-probe"
    "$work/json-lines" "$work/plugin-call")
  fakepci=$work/fakepci.so
  local program
  for program in "${programs[@]}" "$fakepci"; do
    [[ -e $program ]] && continue
    echo "$program is missing: build it first" >&2
    exit 1
  done
}

# The guest's `done COUNT` says how many verdicts there should be: one that got lost is a failure.
judge() {
  local suite=$1 log=$work/$1/results.log passed failed announced
  passed=$(grep -c '^ok ' "$log")
  failed=$(grep -c '^not ok ' "$log")
  announced=$(sed -n 's/^done \([0-9]*\).*/\1/p' "$log" | tr -d '\r')
  total=$((total + passed + failed))
  if ((failed == 0)) && [[ $announced == "$passed" ]]; then return; fi
  bad=$((bad + failed))
  if [[ $announced != $((passed + failed)) ]]; then
    bad=$((bad + 1))
    echo "not ok $suite: the guest broke off or took longer than $boot_seconds s"
  fi
  echo "--- $work/$suite/qemu.log, serial.log (the end)"
  cat "$work/$suite/qemu.log"
  tail -n "$console_lines" "$work/$suite/serial.log" | tr -d '\r'
}

(($# == 1 || $# == 2)) || usage
build=$(cd "$1" 2>/dev/null && pwd) || usage
work=$build/test/vm
cache=${VFIO_AGENT_VM_CACHE:-$work/cache}
image=$work/image.$$
qemu=
trap clean_up EXIT
trap 'exit 130' INT TERM
find_tools
find_programs
mkdir -p "$cache"
# One run at a time for each build folder: they share its logs.
exec {lock}>"$work/lock" && flock "$lock" || exit 1
find_kernel "$cache" || skip "$reason"
build_base "$kernel" "$release" "$cache/base-$release.cpio" || exit 1
build_module "$cache" "$release" "$source_dir/module" || module=
build_image "$cache/base-$release.cpio" "$source_dir" "$image" "${2:-.}" "${programs[@]}" || exit 1

total=0 bad=0
for suite in "${suites[@]}"; do
  iommu=on
  [[ $suite == *noiommu ]] && iommu=off
  started=$SECONDS
  boot "$suite" "$work/$suite" "$boot_seconds" "intel_iommu=$iommu"
  judge "$suite"
  echo "# $suite: $((SECONDS - started)) s"
done
echo "# $total cases, $bad failed"
((bad == 0 && total > 0))
