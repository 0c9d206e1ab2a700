#!/bin/bash
# The image's file system has every library that the program opens by name, or it is not made.
#
#   test/packaging/rootfs_test.sh BUILD_DIR
#
# Exit codes: 0 passed, 1 it did not, 2 usage, 77 skipped (the reason is printed).
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
(($# == 1)) || {
  echo "usage: $0 BUILD_DIR" >&2
  exit 2
}
build=$(cd "$1" && pwd)
ldconfig=$(PATH=$PATH:/sbin:/usr/sbin command -v ldconfig) && command -v dpkg-query >/dev/null || {
  echo "skipped: ldconfig or dpkg-query is missing"
  exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/installed"
passed=0

fail() {
  echo "rootfs_test: $*" >&2
  exit 1
}

ok() {
  passed=$((passed + 1))
  echo "ok $*"
}

# ldconfig_says COMMANDS: what the script's ldconfig is.
ldconfig_says() {
  printf '#!/bin/bash\n%s\n' "$1" >"$work/bin/ldconfig"
  chmod 755 "$work/bin/ldconfig"
}

rootfs() {
  rm -rf "$work/image"
  PATH=$work/bin:$PATH "$source_dir/packaging/image/rootfs.sh" "$work/installed" "$work/image" >"$work/log" 2>&1
}

# More than a pipe holds comes after what is looked for: a reader that leaves early would kill ldconfig.
check_complete() {
  ldconfig_says "$ldconfig -p && yes '	libother.so.1 (libc6) => /nowhere' | head -n 20000"
  rootfs || fail "$(cat "$work/log")"
  local name count=0
  while read -r name; do
    [[ -n $(find "$work/image" -name "$name") ]] || fail "$name is not in the image"
    count=$((count + 1))
  done < <(grep -rhoE 'dlopen\("[^"]+"' "$source_dir"/{sysfs,agent,deviceplugin,iommu} | cut -d'"' -f2)
  ((count > 0)) || fail "no source opens a library"
  ok "$count libraries that are opened by name are in it, however long ldconfig's list is"
}

check_missing() {
  ldconfig_says "$ldconfig -p | grep -v libcivetweb"
  ! rootfs || fail "made without libcivetweb"
  grep -q 'libcivetweb.so.1, which the program opens, is not installed' "$work/log" || fail "$(cat "$work/log")"
  ok "without one of them nothing is made, and it is named"
  ldconfig_says "exit 1"
  ! rootfs || fail "made although ldconfig failed"
  ok "where ldconfig fails nothing is made"
}

cmake --install "$build" --component runtime --strip --prefix "$work/installed" >"$work/install.log" ||
  fail "cmake --install: $(tail -n 3 "$work/install.log")"
check_complete
check_missing
echo "$passed passed, 0 failed"
