#!/bin/bash
# The completion scripts offer the right words, each in its own shell. Exit code 77: skipped.
#
#   test/command_line/completion_test.sh VFIO_AGENT SHELL
set -euo pipefail
agent=$1 shell=$2
command -v "$shell" >/dev/null || {
  echo "skipped: $shell is missing (package $shell)"
  exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# One GPU in group 5.
make_node() {
  local device=$work/node/sys/devices/pci0000:00/0000:65:00.0 group=sys/kernel/iommu_groups/5
  mkdir -p "$device" "$work/node/$group/devices" "$work/node/sys/bus/pci/devices" "$work/files/sub"
  ln -s ../../../devices/pci0000:00/0000:65:00.0 "$work/node/sys/bus/pci/devices/0000:65:00.0"
  ln -s "../../../kernel/iommu_groups/5" "$device/iommu_group"
  echo 0x10de >"$device/vendor"
  echo 0x2330 >"$device/device"
  echo 0x030200 >"$device/class"
  { printf '\xde\x10\x30\x23' && head -c 60 /dev/zero; } >"$device/config"
  touch "$work/files/one.yaml"
}

# Each prints, for a line, the words that its shell would offer, one a line.
words_bash() {
  "$shell" -c '
    source <("$1" completion bash)
    COMP_WORDBREAKS=$'\'' \t\n"><=;|&(:'\'' COMP_LINE=$2 COMP_POINT=${#2}
    _vfio_agent "$1"
    printf "%s\n" "${COMPREPLY[@]}"' - "$agent" "$1"
}

words_zsh() {
  "$shell" -f -c '
    compdef() { }
    compadd() { print -rl -- $found }
    compset() { PREFIX=${PREFIX#*=} }
    _files() { print -rl -- ${PREFIX}*(N) }
    source <("$1" completion zsh)
    words=("${(s: :)2}") CURRENT=${#words} PREFIX= IPREFIX=
    [[ $2 != *" " ]] || { words+=(""); CURRENT=${#words} }
    PREFIX=$words[CURRENT] words[1]=$1
    _vfio-agent' - "$agent" "$1"
}

words_fish() {
  PATH=$(dirname "$agent"):$PATH "$shell" --no-config -c '
    source (vfio-agent completion fish | psub)
    complete -C $argv[1]' -- "$1" | cut -f 1
}

# expect LINE WORD...: exactly these, in any order.
expect() {
  local line=$1 found wanted
  shift
  wanted=$(printf '%s\n' "$@" | sort)
  found=$("words_$shell" "$line" | sed '/^$/d' | sort)
  [[ $found == "$wanted" ]] && return
  echo "'$line': '${found//$'\n'/ }' and not '$*'"
  failed=$((failed + 1))
}

make_node
node="--root $work/node"
expect 'vfio-agent pl' plan
expect 'vfio-agent config ' check show
expect 'vfio-agent plan --exi' --exit-code
expect 'vfio-agent plan -o ' table wide json yaml
expect 'vfio-agent list ' devices groups resources slices
expect 'vfio-agent completion z' zsh
expect "vfio-agent explain $node gr" group:5
expect "vfio-agent explain $node spoons"
if [[ $shell == bash ]]; then
  # bash replaces only what follows the last ':' or '='.
  expect "vfio-agent explain $node 0000:65" 65:00.0
  expect "vfio-agent explain $node group:" 5
  expect 'vfio-agent plan --output=j' json
else
  expect "vfio-agent explain $node 0000:65" 0000:65:00.0
  expect "vfio-agent explain $node 65:" 65:00.0
  expect 'vfio-agent plan --output=j' --output=json
fi
cd "$work/files"
expect 'vfio-agent plan --config o' one.yaml
expect 'vfio-agent plan --root o' one.yaml # a snapshot
echo "$shell: $failed complaints"
((failed == 0))
