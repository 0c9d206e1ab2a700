#!/bin/bash
# Every C++ file is formatted as .clang-format says. Exit code 77: skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v clang-format >/dev/null || {
  echo "skipped: clang-format is missing (package clang-format)"
  exit 77
}
mapfile -t files < <(find agent sysfs deviceplugin iommu test -name '*.h' -o -name '*.cc' | sort)
((${#files[@]} > 0))
bad=0
for file in "${files[@]}"; do
  clang-format --dry-run -Werror "$file" 2>/dev/null && continue
  echo "not formatted: $file (clang-format -i $file)"
  bad=$((bad + 1))
done
echo "${#files[@]} files, $bad not formatted"
((bad == 0))
