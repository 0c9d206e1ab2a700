#!/bin/bash
# Runs the fuzz programs, two at a time: see README.md.
#
#   test/fuzz/run.sh BUILD_DIR [SECONDS [NAME...]]
#
# SECONDS for each program, 60 if not given; NAME: address, tree, …; all if none is given. Inputs
# that reach something new are kept in BUILD_DIR/corpus/NAME, findings in BUILD_DIR/findings.
# With SEED=N in the environment each run tries the same inputs in the same order; otherwise others
# each time.
#
# Exit codes: 0 nothing found, 1 something was found or did not run, 2 usage.
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
  echo "usage: $0 BUILD_DIR [SECONDS [NAME...]]" >&2
  exit 2
}

# figure LOG NAME: one of those that libFuzzer prints at its end.
figure() { sed -n "s/^stat::$2: *//p" "$1"; }

# What was found and how to see it again; what was not told by libFuzzer is a program that never ran.
report() {
  local name=$1 program=$2 log=$3 artifact
  artifact=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
  echo "$name: FAILED"
  grep -a -E -m 3 '^(BROKEN|SUMMARY)|: runtime error:' "$log" | sed 's/^/  /' || true
  if [[ -n $artifact ]]; then
    echo "  input:     $artifact"
    echo "  reproduce: $program $artifact"
  else
    tail -n 5 "$log" | sed 's/^/  /'
  fi
  echo "  log:       $log"
}

run_one() {
  local name=$1 program=$build/test/fuzz/$1_fuzz corpus=$build/corpus/$1
  local log=$findings/$name.log options=()
  mkdir -p "$corpus" "$scratch/$name"
  [[ -f $source_dir/words/$name ]] && options=(-dict="$source_dir/words/$name")
  # The first folder is where libFuzzer writes; the seeds are only read.
  if ! TMPDIR=$scratch/$name "$program" -max_total_time="$seconds" -timeout=10 \
    -rss_limit_mb=2048 -seed="${SEED:-0}" -print_final_stats=1 -artifact_prefix="$findings/$name-" \
    "${options[@]}" "$corpus" "$source_dir/seeds/$name" >"$log" 2>&1; then
    report "$name" "$program" "$log"
    return 1
  fi
  printf '%-14s %9s runs  %5s branches covered  %7s runs/s  %4s MB\n' "$name" \
    "$(figure "$log" number_of_executed_units)" \
    "$(grep -a -oE 'cov: [0-9]+' "$log" | tail -n 1 | cut -d' ' -f2)" \
    "$(figure "$log" average_exec_per_sec)" "$(figure "$log" peak_rss_mb)"
}

(($# >= 1)) && [[ -d $1 ]] || usage
build=$(cd "$1" && pwd)
seconds=${2:-60}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || usage
names=("${@:3}")
if ((${#names[@]} == 0)); then
  mapfile -t names < <(cd "$source_dir" && ls -- *_fuzz.cc | sed 's/_fuzz\.cc$//')
fi
for name in "${names[@]}"; do
  [[ -x $build/test/fuzz/${name}_fuzz ]] && continue
  echo "$build/test/fuzz/${name}_fuzz is missing: cmake --build $build --target fuzz" >&2
  exit 1
done

findings=$build/findings
mkdir -p "$findings"
# Trees are made and removed thousands of times a second: in memory, where there is such a place.
scratch=$(mktemp -d "$([[ -w /dev/shm ]] && echo /dev/shm || echo "${TMPDIR:-/tmp}")/vfa-fuzz-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
# Freed memory that is kept back grows to 256 MB otherwise, for inputs that live for microseconds.
export ASAN_OPTIONS=quarantine_size_mb=64:${ASAN_OPTIONS:-}
export build seconds findings scratch source_dir
export -f run_one report figure
printf '%s\0' "${names[@]}" | xargs -0 -P 2 -n 1 bash -c 'run_one "$0"' && exit 0
echo "something was found: see above" >&2
exit 1
