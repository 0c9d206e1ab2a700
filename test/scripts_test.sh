#!/bin/bash
# Every shell script can be parsed by the shell that its first line names (a sourced one: bash).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
failed=0 count=0
while read -r script; do
  shell=bash
  # What the guest sources runs in busybox's shell.
  if [[ $(head -n 1 "$script") == '#!/bin/sh'* || $script == test/vm/guest/* ]]; then shell='sh'; fi
  "$shell" -n "$script" || failed=$((failed + 1))
  count=$((count + 1))
done < <({
  find packaging test -name '*.sh'
  grep -lrE '^#!/bin/(ba)?sh' packaging test .ci
} | sort -u)
echo "$count scripts, $failed cannot be parsed"
((count > 0 && failed == 0))
