#!/bin/bash
# The ResourceSlices of each recorded machine are the reviewed ones in golden/, if its devices were
# served by DRA: golden/NAME.json. No file has more than the API server takes.
#
#   test/dra/golden_test.sh VFIO_AGENT SIM_NODE [--write]
#
# --write makes the files anew: read the difference line by line before you commit it.
set -euo pipefail
agent=$(realpath "$1") sim=$(realpath "$2") write=${3:-}
cd "$(dirname "${BASH_SOURCE[0]}")"
machines=../machines
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 looked=0
export NODE_NAME=node-1

cat >"$work/config.yaml" <<END
pciIds: $PWD/$machines/golden/pci.ids
resources:
  - {preset: nvidia, serve: dra}
  - {preset: amd, serve: dra}
  - {preset: mellanox, serve: dra}
END

for file in "$machines"/*.yaml; do
  name=$(basename "$file" .yaml)
  "$sim" --machine "$file" --dump "$work/$name" >/dev/null
  "$agent" list slices -o json --root "$work/$name" --state-dir "$work/state" \
    --config "$work/config.yaml" >"$work/$name.json" 2>"$work/errors" || {
    cat "$work/errors"
    exit 1
  }
  looked=$((looked + 1))
  if ! python3 limits.py <"$work/$name.json"; then
    echo "$name: not as the API server takes it"
    failed=$((failed + 1))
  fi
  if [[ $write == --write ]]; then
    cp "$work/$name.json" "golden/$name.json"
  elif ! diff -u "golden/$name.json" "$work/$name.json"; then
    failed=$((failed + 1))
  fi
done
# A file that no machine has any more would be read by nobody.
for golden in golden/*.json; do
  [[ -e $work/$(basename "$golden") ]] || { echo "$golden: no machine"; failed=$((failed + 1)); }
done
echo "$looked machines, $failed complaints; to write them anew: ${BASH_SOURCE[0]} $agent $sim --write"
((failed == 0))
