#!/bin/bash
# Builds the fuzz programs and runs each for a minute: what CTest runs as `fuzz`.
#
#   test/fuzz/test.sh BUILD_DIR      a build folder of its own, made where it is missing
#
# Exit codes: 0 nothing found, 1 something was found, 77 skipped (the reason is printed).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
(($# == 1)) || {
  echo "usage: $0 BUILD_DIR" >&2
  exit 2
}

skip() {
  echo "skipped: $*"
  exit 77
}
command -v clang++ >/dev/null || skip "clang++ is missing (package clang)"
# Where clang does not have the file it answers with the bare name.
runtime=$(clang++ -print-file-name="libclang_rt.fuzzer-$(uname -m).a")
[[ -e $runtime ]] || skip "libFuzzer is missing (package libclang-rt-14-dev)"

cmake --preset fuzz -B "$1" >"$1.log" 2>&1 || {
  cat "$1.log"
  exit 1
}
cmake --build "$1" --target fuzz --parallel "$(nproc)"
# A change is judged by itself and not by luck: the hunt for more is test/fuzz/run.sh by hand.
SEED=1 exec test/fuzz/run.sh "$1" 60
