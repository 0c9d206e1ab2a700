#!/bin/bash
# bind.sh BUILD_DIR: eight groups whose unbind takes two seconds each, bound by one `bind`; prints the
# time and its ratio to one such unbind (1 = all at once, 8 = one after the other).
set -euo pipefail
build=$(realpath "${1:?usage: bind.sh BUILD_DIR}")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d)
mkdir "$scratch/node"
: >"$scratch/log"
printf 'faults: [{device: "*", op: unbind, delay: 2s}]\n' >"$scratch/scenario.yaml"
"$build/test/sim/sim-node" --machine "$here/../machines/hgx-8gpu.yaml" \
  --scenario "$scratch/scenario.yaml" --mount "$scratch/node" >"$scratch/log" &
sim=$!
trap 'kill "$sim" 2>/dev/null || true; wait "$sim" 2>/dev/null || true; rm -rf "$scratch"' EXIT
until grep -q ready "$scratch/log"; do sleep 0.1; done
start=$(date +%s%N)
"$build/vfio-agent" bind --root "$scratch/node" --state-dir "$scratch/state" >"$scratch/out"
end=$(date +%s%N)
bound=$(grep -c ': bound' "$scratch/out")
awk -v ns=$((end - start)) -v bound="$bound" \
  'BEGIN { printf "groups=%d seconds=%.2f ratio=%.2f\n", bound, ns / 1e9, ns / 2e9 }'
