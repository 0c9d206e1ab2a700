#!/bin/bash
# The plan for each recorded machine is the reviewed one in golden/: what is offered, what is refused
# and why. golden/NAME.txt is by the built-in policy, golden/NAME.PRESET.txt by that preset.
#
#   test/machines/golden_test.sh VFIO_AGENT SIM_NODE [--write]
#
# --write makes the files anew: read the difference line by line before you commit it.
set -euo pipefail
agent=$(realpath "$1") sim=$(realpath "$2") write=${3:-}
cd "$(dirname "${BASH_SOURCE[0]}")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 looked=0

# Where one of several vendors' presets has something to say.
with_presets=(
  "mi300x-8gpu-cx7-switches amd"
  "mi300x-8gpu-cx7-switches mellanox"
  "hgx-8gpu mellanox"
  "hgx-8gpu nvme"
  "hgx-b200-8gpu-cx7-switch-chains mellanox"
  "am5-desktop-igpu-only amd"
  "desktop-b450-rx580-raven-apu-chipset-group amd"
  "laptop-intel-raptorlake-iommu-on intel"
  "jetson-orin-arm64-platform-root nvme"
  "supermicro-epyc-no-gpu nvme"
  "vm-domain-10000 nvme"
)

# compare ROOT NAME [PRESET]
compare() {
  local name=$2${3:+.$3}
  {
    echo "pciIds: $PWD/golden/pci.ids"
    if [[ $# -gt 2 ]]; then echo "resources: [{preset: $3}]"; fi
  } >"$work/config.yaml"
  "$agent" plan --all --root "$1" --state-dir "$work/state" --config "$work/config.yaml" \
    >"$work/$name.txt"
  looked=$((looked + 1))
  if [[ $write == --write ]]; then
    cp "$work/$name.txt" "golden/$name.txt"
  elif ! diff -u "golden/$name.txt" "$work/$name.txt"; then
    failed=$((failed + 1))
  fi
}

for file in *.yaml; do
  "$sim" --machine "$file" --dump "$work/${file%.yaml}" >/dev/null
  compare "$work/${file%.yaml}" "${file%.yaml}"
done
for pair in "${with_presets[@]}"; do
  read -r machine preset <<<"$pair"
  compare "$work/$machine" "$machine" "$preset"
done
# A file that no machine has any more would be read by nobody.
for golden in golden/*.txt; do
  [[ -e $work/$(basename "$golden") ]] || { echo "$golden: no machine"; failed=$((failed + 1)); }
done
echo "$looked plans, $failed complaints; to write them anew: ${BASH_SOURCE[0]} $agent $sim --write"
((failed == 0))
