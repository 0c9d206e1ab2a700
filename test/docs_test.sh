#!/bin/bash
# What the documents say is what the program has: codes, events, flags, settings, examples, links.
#
#   test/docs_test.sh VFIO_AGENT
set -euo pipefail
agent=$1
cd "$(dirname "${BASH_SOURCE[0]}")/.."
guide=packaging/OPERATING.md
manual=packaging/vfio-agent.8
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

complain() {
  echo "$*"
  failed=$((failed + 1))
}

# A source file as one line: how it is broken into lines is not this test's matter.
flat() { tr -s '\n ' ' ' <"$1"; }

code_names() { flat iommu/code.cc | grep -oE '\{Code::k[A-Za-z0-9]+, "[a-z0-9-]+"' | cut -d'"' -f2; }

# The names that the reports return or assign; what they pass to With() are keys.
event_names() {
  cat agent/daemon/*report.cc | tr -s '\n ' ' ' | tr ';{}' '\n' | grep -E 'return |\bname = ' |
    sed -E 's/With\("[a-z_]*"//g' | grep -oE '"[a-z]+(_[a-z]+)*"' | tr -d '"'
}

setting_keys() { flat agent/config/settings.cc | grep -oE '\{"[a-z-]+", "[a-zA-Z.]+",' | cut -d'"' -f4; }

# The ### headings below one ## heading of the guide.
headings() {
  awk -v section="## $1" '/^## / { inside = ($0 == section) } inside && sub(/^### /, "")' "$guide"
}

# compare WHAT SECTION NAMES: each name has its heading, once, and no heading is left over.
compare() {
  local name
  sort -u <<<"$3" >"$work/names"
  headings "$2" | sort >"$work/headings"
  [[ -s $work/names ]] || complain "no $1 found in the sources"
  while read -r name; do complain "$guide: the $1 $name has no section"; done \
    < <(comm -23 "$work/names" <(sort -u "$work/headings"))
  while read -r name; do complain "$guide: '### $name' is no $1, or stands twice"; done \
    < <(comm -13 "$work/names" "$work/headings")
}

# The program makes its own man page; this is a copy, for those who have no program yet.
check_manual() {
  diff <("$agent" help --man) "$manual" >"$work/manual" ||
    complain "$manual: not what the program makes; '$agent help --man > $manual' makes it anew"
  # man's own complaints about the markup.
  command -v man >/dev/null || return 0
  MANWIDTH=100 LC_ALL=C.UTF-8 man --warnings -l "$manual" >"$work/page" 2>"$work/warnings" || true
  [[ ! -s $work/warnings ]] || complain "$manual: $(cat "$work/warnings")"
}

# Each setting by its variable and its key, each with its default.
check_settings() {
  local word
  while read -r word; do
    grep -qF "\`$word\`" "$guide" || complain "$guide: the setting $word is missing"
  done < <(
    "$agent" run --help | grep -oE 'VFIO_AGENT_[A-Z_]+' | sort -u
    setting_keys
  )
}

check_config() {
  "$agent" config check --config "$1" >"$work/check" 2>&1 || complain "$2: $(cat "$work/check")"
}

check_examples() {
  local name
  check_config packaging/config.example.yaml packaging/config.example.yaml
  # It claims to show the defaults.
  diff <("$agent" config show --config packaging/config.example.yaml) \
    <("$agent" config show --config /dev/null) || complain "packaging/config.example.yaml: no defaults"
  for name in packaging/kustomize/base/config.yaml packaging/debian/config.yaml; do
    check_config "$name" "$name"
  done
}

# T26: where the gpu-operator's own managers are to be off, by which labels.
check_rivals() {
  local word
  for word in nvidia.com/gpu.deploy.{vfio-manager,sandbox-device-plugin}=false externalResourceProvider; do
    grep -qF -- "$word" "$guide" || complain "$guide: $word is not named"
  done
}

# What the cluster is told are lines of the log.
check_cluster_events() {
  local name count=0
  while read -r name; do
    count=$((count + 1))
    event_names | grep -qxF -- "$name" || complain "agent/cluster/node_events.cc: $name is no event of the log"
  done < <(flat agent/cluster/node_events.cc | grep -oE '\{"[a-z_]+", k(Normal|Warning)' | cut -d'"' -f2)
  ((count > 20)) || complain "agent/cluster/node_events.cc: only $count events were found"
}

# The name by which a heading is linked to.
anchors() { sed -nE 's/^#+ //p' "$1" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9_\n-'; }

# leads DOCUMENT TARGET: a heading, a file, or a heading of a file.
leads() {
  local file=$1
  [[ $2 == \#* ]] || file=$(dirname "$1")/${2%%#*}
  [[ -e $file ]] || return 1
  [[ $2 != *\#* ]] || anchors "$file" | grep -qxF -- "${2#*#}"
}

check_links() {
  local document target
  for document in "$@"; do
    while read -r target; do
      [[ $target == http* ]] || leads "$document" "$target" ||
        complain "$document: the link to $target leads nowhere"
    done < <(grep -oE '\]\([^)]+\)' "$document" | sed -E 's/^..(.*).$/\1/' | sort -u)
  done
}

compare code "Refusal codes" "$(code_names)"
compare event "Log events" "$(event_names)"
check_manual
check_settings
check_rivals
check_cluster_events
check_examples
check_links README.md CHANGELOG.md "$guide"
echo "$(code_names | wc -l) codes, $(event_names | sort -u | wc -l) events, $failed complaints"
((failed == 0))
