#!/bin/bash
# The program that is shipped: hardened, without the names of the folders that it was built in, and the
# same bytes wherever and whenever it is built.
#
#   test/packaging/binary_test.sh BUILD_DIR BUILD_TYPE
#
# Exit codes: 0 passed, 1 it did not, 2 usage, 77 skipped (the reason is printed).
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
(($# == 2)) || {
  echo "usage: $0 BUILD_DIR BUILD_TYPE" >&2
  exit 2
}
build=$(cd "$1" && pwd)
program=$build/vfio-agent
[[ $2 == RelWithDebInfo || $2 == Release || $2 == MinSizeRel ]] || {
  echo "skipped: a build of the type '$2' is not shipped"
  exit 77
}
command -v readelf >/dev/null || {
  echo "skipped: readelf is missing (package binutils)"
  exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 count=0

# check WHAT COMMAND...: the command's success.
check() {
  local what=$1
  shift
  count=$((count + 1))
  "$@" >"$work/log" 2>&1 && return
  echo "not ok $what"
  tail -n 5 "$work/log"
  failed=$((failed + 1))
}

has() { grep -qE -- "$1" "$work/elf"; }
lacks() { ! grep -qE -- "$1" "$work/elf"; }

check_hardening() {
  readelf -W -h -l -d -n --dyn-syms "$program" >"$work/elf"
  check "position independent (PIE)" has 'Type: +DYN'
  check "relocations are read-only (RELRO)" has 'GNU_RELRO'
  check "and all done at the start (BIND_NOW)" has 'BIND_NOW|FLAGS_1.*NOW'
  check "no executable stack" has 'GNU_STACK +.* RW +0x'
  check "stack protector" has '__stack_chk_fail'
  check "_FORTIFY_SOURCE" has '__(read|memcpy|snprintf|vsnprintf)_chk'
  check "a build id" has 'Build ID: [0-9a-f]{40}$'
  check "no RPATH" lacks 'RPATH|RUNPATH'
  check "libstdc++ is linked in" lacks 'libstdc\+\+'
}

# ccache with a base_dir hands the compiler other names than CMake does; such a build is not shipped.
says_no_folder() { ! grep -qaF -e "$source_dir" -e "$build" "$program"; }

# The same link once more, at another time and to another name.
links_the_same() {
  local command
  command=$(ninja -C "$build" -t commands vfio-agent | grep -E -- ' -o vfio-agent( |$)' | tail -n 1)
  [[ -n $command ]] || return 1
  command=${command/ -o vfio-agent / -o $work/again }
  command=${command//--dependency-file=vfio-agent.link.d/--dependency-file=$work/again.d}
  (cd "$build" && eval "$command") && cmp "$program" "$work/again"
}

# compile FOLDER: some objects in a copy of the sources there, without a cache; one includes what was
# generated in the build's folder.
compile() {
  mkdir -p "$1"
  (cd "$source_dir" && cp -R CMakeLists.txt CMakePresets.json CHANGELOG.md LICENSE packaging proto sysfs iommu \
    deviceplugin agent "$1") || return
  (cd "$1" && CCACHE_DISABLE=1 cmake --preset release -DBUILD_TESTING=OFF &&
    CCACHE_DISABLE=1 ninja -C build/release "${objects[@]}")
}

objects=(CMakeFiles/vfio_agent_sysfs.dir/sysfs/device/pci_address.cc.o
  CMakeFiles/vfio_agent_proto.dir/generated/proto/health.pb.cc.o)

compiles_the_same() {
  local object
  compile "$work/one" && compile "$work/two/farther/away" || return
  for object in "${objects[@]}"; do
    cmp "$work/one/build/release/$object" "$work/two/farther/away/build/release/$object" || return
  done
}

check_hardening
check "it names neither the source's nor the build's folder" says_no_folder
check "linked again it has the same bytes" links_the_same
check "compiled in two folders the objects have the same bytes" compiles_the_same
echo "$((count - failed)) passed, $failed failed"
((failed == 0))
