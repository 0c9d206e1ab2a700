#!/bin/bash
# A type's name is one type's: two headers that define the same name in one namespace break each
# other's destructors silently, as the linker keeps one of them.
#
# Exit codes: 0 every name is defined once, 1 one is defined twice.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# FILE NAME of every type that a header defines at the outermost level.
types() {
  awk 'FNR == 1 { name = "" }
    match($0, /^(struct|class|enum class|enum) /) && !/;$/ {
      sub(/^(struct|class|enum class|enum) /, "")
      gsub(/ABSL_[A-Z_]+ /, "")
      split($0, words, /[^A-Za-z0-9_]+/)
      print FILENAME, words[1]
    }' "$@"
}

list=$(mktemp)
trap 'rm -f "$list"' EXIT
mapfile -t headers < <(find agent iommu sysfs deviceplugin -name '*.h' | sort)
types "${headers[@]}" | sort -u -k2,2 -k1,1 >"$list"
twice=$(cut -d' ' -f2 "$list" | uniq -d)
for name in $twice; do
  echo "$name is defined in: $(grep " $name\$" "$list" | cut -d' ' -f1 | tr '\n' ' ')"
done
echo "${#headers[@]} headers, $(wc -l <"$list") types, $(wc -w <<<"$twice") of them defined twice"
[[ -z $twice ]]
