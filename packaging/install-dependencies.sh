#!/bin/bash
# Installs from Debian 12 what is needed and missing; see the file debian-packages beside this one.
#
#   packaging/install-dependencies.sh [--build] [--simulate] [--test] [--run] [--package]
#
# Without an argument: --build --run. Needs neither root nor a network where nothing is missing.
# Exit codes: 0 all is there, 1 something is missing and cannot be installed, 2 usage.
set -euo pipefail
list=$(dirname "${BASH_SOURCE[0]}")/debian-packages

usage() {
  echo "usage: $0 [--build] [--simulate] [--test] [--run] [--package]" >&2
  exit 2
}

# missing PURPOSE...: the packages that are not installed, one a line.
missing() {
  local wanted installed
  wanted=$(awk -v purposes=" $* " '$1 !~ /^#/ && index(purposes, " " $1 " ") { print $2 }' "$list")
  # dpkg-query fails where it knows nothing of a package: that is an answer, not an error.
  # shellcheck disable=SC2086
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $wanted 2>/dev/null || true)
  comm -23 <(sort -u <<<"$wanted") <(awk '$2 == "installed" { print $1 }' <<<"$installed" | sort -u)
}

give_up() {
  echo "$1" >&2
  echo "missing: ${packages[*]}" >&2
  echo "install them with: apt-get update && apt-get install --no-install-recommends ${packages[*]}" >&2
  exit 1
}

apt() { apt-get -q -y -o DPkg::Lock::Timeout=120 "$@"; }

install() {
  local log
  log=$(mktemp)
  export DEBIAN_FRONTEND=noninteractive
  echo "installing: ${packages[*]}"
  if { apt update && apt install --no-install-recommends "${packages[@]}"; } >"$log" 2>&1; then
    rm -f "$log"
    return
  fi
  grep -E '^(E|W|Err):?' "$log" | head -n 5 >&2 || true
  rm -f "$log"
  give_up "apt-get could not install what is missing; without a network it cannot."
}

purposes=()
for argument in "$@"; do
  case $argument in
    --build | --simulate | --test | --run | --package) purposes+=("${argument#--}") ;;
    *) usage ;;
  esac
done
((${#purposes[@]} > 0)) || purposes=(build run)
command -v dpkg-query >/dev/null || {
  mapfile -t packages < <(awk '$1 !~ /^#/ { print $2 }' "$list")
  give_up "this is not Debian: install what corresponds to these packages."
}
mapfile -t packages < <(missing "${purposes[@]}")
((${#packages[@]} > 0)) || exit 0
((EUID == 0)) || give_up "only root can install packages."
install
