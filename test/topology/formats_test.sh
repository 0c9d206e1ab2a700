#!/bin/bash
# The guest's XML fits libvirt's schema, and Graphviz and an XML parser read the pictures.
#
#   test/topology/formats_test.sh VFIO_AGENT SIM_NODE
set -euo pipefail
agent=$1 sim=$2
machines=$(cd "$(dirname "${BASH_SOURCE[0]}")/../machines" && pwd)
schema=/usr/share/libvirt/schemas/domain.rng
missing=
for needed in xmllint dot; do command -v "$needed" >/dev/null || missing+=" $needed"; done
[[ -e $schema ]] || missing+=" $schema"
if [[ -n $missing ]]; then
  echo "skipped:$missing not installed"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# topology ROOT ARGUMENT...
topology() { "$agent" topology "${@:2}" --root "$1" --state-dir "$work/state" --config /dev/null; }

looked=0
for file in "$machines"/*.yaml; do
  root=$work/$(basename "$file" .yaml)
  "$sim" --machine "$file" --dump "$root" >/dev/null
  topology "$root" -o svg >"$work/picture.svg"
  xmllint --noout "$work/picture.svg"
  topology "$root" -o dot >"$work/picture.dot"
  dot -Tsvg -o /dev/null "$work/picture.dot"
  # Where nothing is selected, whatever there is goes to the guest.
  topology "$root" -o json >"$work/topology.json"
  mapfile -t devices < <(grep -oE '"address": "[^"]+"' "$work/topology.json" | cut -d'"' -f4)
  ((${#devices[@]} > 0)) || continue
  topology "$root" --guest libvirt "${devices[@]}" >"$work/domain.xml"
  xmllint --noout --relaxng "$schema" "$work/domain.xml" 2>"$work/why" || {
    cat "$work/why"
    exit 1
  }
  looked=$((looked + 1))
done
echo "$looked domains fit $schema"
((looked > 15))
