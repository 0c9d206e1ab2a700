#!/bin/bash
# clang-tidy, as .clang-tidy says, over every C++ file of ours or over those that are named:
#
#   test/tidy.sh [FILE.cc...]
#
# Exit code: 0 nothing found, 1 findings, 2 it cannot run. It needs the build folder of the preset
# clang, with its generated headers; it takes a quarter of an hour or more, so no test
# calls it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=build/clang

command -v clang-tidy >/dev/null || {
  echo "clang-tidy is missing (package clang-tidy)" >&2
  exit 2
}
if [[ ! -f $build/compile_commands.json || ! -d $build/generated/proto ]]; then
  echo "first: cmake --preset clang && cmake --build --preset clang" >&2
  exit 2
fi

files=("$@")
if ((${#files[@]} == 0)); then
  mapfile -t files < <(find agent sysfs iommu deviceplugin test -name '*.cc' | sort)
fi
# What is said on stderr is the count of warnings in other people's headers, except when
# clang-tidy itself fails; then the exit code tells.
check() {
  local said
  said=$(clang-tidy --quiet -p "$1" "$2" 2>&1) && return
  printf '%s\n' "$said" | grep -vE '^[0-9]+ warnings?( and [0-9]+ errors?)? generated'
  return 1
}
export -f check
if printf '%s\0' "${files[@]}" |
  xargs -0 -P 2 -n 1 bash -c 'check "$0" "$1"' "$build"; then
  echo "clang-tidy: ${#files[@]} files, nothing found"
else
  echo "clang-tidy: ${#files[@]} files, findings above" >&2
  exit 1
fi
