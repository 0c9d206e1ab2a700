#!/bin/bash
# README.md's tables of the contract's rules and traps are complete and true.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readme=test/README.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

complain() {
  echo "$readme: $*"
  failed=$((failed + 1))
}

# A name may be broken into several literals.
case_names() {
  find test -name '*_test.cc' -print0 | xargs -0 cat | tr -s '\n ' ' ' |
    grep -oE 'TEST_CASE\( ?("([^"\\]|\\.)*" ?)+' |
    sed -E 's/^TEST_CASE\( ?"//; s/" ?$//; s/" "//g'
}

# The checks of the conformance suite, as "R23: the first list comes at once".
check_names() {
  cat test/conformance/checks_*.cc | tr -s '\n ' ' ' |
    grep -oE '\{"[a-z-]+", "R[0-9]+", ("[^"]*" ?)+' |
    sed -E 's/^\{"[a-z-]+", "(R[0-9]+)", "/\1: /; s/" ?$//; s/" "//g'
}

# check_test NUMBER TEXT: the test is there and has the number in its name.
check_test() {
  grep -qxF -- "$2" "$work/names" || complain "$1: there is no test '$2'"
  grep -qw -- "$1" <<<"$2" || complain "$1: the test '$2' does not name it"
}

# What a row may say instead of tests: phase 2, or a script that names the number.
check_row() {
  local number=$1 tests=$2 text
  if [[ $tests == 'phase 2' ]]; then return; fi
  if [[ $tests == \`*\` ]]; then
    grep -qw -- "$number" "${tests//\`/}" || complain "$number: $tests does not name it"
    return
  fi
  [[ -n $tests ]] || complain "$number: no test"
  while read -r text; do check_test "$number" "$text"; done <<<"${tests//<br>/$'\n'}"
}

rows() { grep -E '^\| [RT][0-9]+ \|' "$readme"; }

{ case_names && check_names; } | sort -u >"$work/names"
[[ $(wc -l <"$work/names") -gt 500 ]] || complain "only $(wc -l <"$work/names") tests were found"
diff <(printf '%s\n' R{1..62} T{1..32}) <(rows | awk '{ print $2 }') >"$work/diff" ||
  complain "rows are missing, twice or out of order: $(cat "$work/diff")"
while IFS= read -r row; do
  number=${row#| } number=${number%% *}
  tests=${row% |} tests=${tests##*| }
  check_row "$number" "$tests"
done < <(rows)
while read -r file; do
  [[ -e $file ]] || complain "$file is not there"
done < <(rows | grep -oE '`[^`]+`' | tr -d '`' | sort -u)
echo "$(rows | wc -l) rows, $(wc -l <"$work/names") tests, $failed complaints"
((failed == 0))
