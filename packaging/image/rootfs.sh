#!/bin/bash
# The image's whole file system: the program, the libraries that it loads, the model names, and what
# scanners look for. No shell and no package manager, so nothing that has to be updated for itself.
# The Dockerfile copies the result, and the tests build the same image from it without Docker.
#
#   packaging/image/rootfs.sh INSTALLED DESTINATION
#
# INSTALLED is what `cmake --install --component runtime --strip --prefix INSTALLED` made; DESTINATION
# must not be there yet. Files get the time SOURCE_DATE_EPOCH (1 January 1970 where there is none).
# Exit codes: 0 done, 1 it failed, 2 usage.
set -euo pipefail
(($# == 2)) || {
  echo "usage: $0 INSTALLED DESTINATION" >&2
  exit 2
}
installed=$1 destination=$2
program=$installed/bin/vfio-agent
declare -A packages=()

fail() {
  echo "$0: $*" >&2
  exit 1
}

# needed FILE: what the loader opens for it, the loader included.
needed() {
  local list
  list=$(ldd "$1") || fail "ldd cannot tell what $1 needs"
  [[ $list != *'not found'* ]] || fail "what $1 needs is not installed: ${list//$'\n'/;}"
  sed -nE 's/^(.* => )?\s*(\/[^ ]+) \(0x.*/\2/p' <<<"$list"
}

# The libraries that are opened by name when they are wanted: their names stand in the program.
names() { grep -aoE '\blib[A-Za-z0-9_+-]+\.so\.[0-9]+\b' "$program" | sort -u; }

# The lists are files and not pipes: what fails in a process substitution nobody hears of, and a
# reader that leaves early kills the writer.
libraries() {
  local name path
  names >"$lists/names"
  ldconfig -p >"$lists/cache"
  needed "$program" >"$lists/all"
  while read -r name; do
    path=$(awk -v name="$name" '$1 == name && !found { found = $NF } END { print found }' "$lists/cache")
    [[ -n $path ]] || fail "$name, which the program opens, is not installed"
    echo "$path" >>"$lists/all"
    needed "$path" >>"$lists/all"
  done <"$lists/names"
  sort -u "$lists/all" >"$lists/libraries"
}

# check_libraries: each of those names is in the image, or no image is made.
check_libraries() {
  local name
  while read -r name; do
    [[ -n $(find "$destination/usr/" -name "$name") ]] || fail "$name is not in the image"
  done <"$lists/names"
}

# take FILE: into the image under the same name, and its package into the list of packages.
take() {
  local owner
  owner=$(dpkg-query -S "$1" 2>/dev/null || dpkg-query -S "$(realpath "$1")") ||
    fail "no package has $1"
  packages[${owner%%:*}]=1
  # Links of the path's folders (/lib, /lib64) are laid below; a link of the file is followed.
  install -D -m "$2" "$1" "$destination$1"
}

# What the program and its libraries come from, as a scanner finds it in images without a dpkg of
# their own: one paragraph each in status.d, and the licence.
take_packages() {
  local package
  for package in "${!packages[@]}"; do
    mkdir -p "$destination/var/lib/dpkg/status.d" "$destination/usr/share/doc/$package"
    dpkg-query -s "$package" | sed '/^Conffiles:/,/^[^ ]/{/^Conffiles:/d;/^ /d}' \
      >"$destination/var/lib/dpkg/status.d/$package"
    cp -L "/usr/share/doc/$package/copyright" "$destination/usr/share/doc/$package/copyright"
  done
}

[[ -x $program ]] || fail "$program is no program"
[[ ! -e $destination ]] || fail "$destination is there already"
umask 022
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT
mkdir -p "$destination"/{etc/vfio-agent,usr/bin,usr/lib,usr/lib64,usr/share,var/lib/vfio-agent}
# As on the machine that this runs on: Debian's are links.
ln -s usr/bin "$destination/bin"
ln -s usr/lib "$destination/lib"
ln -s usr/lib64 "$destination/lib64"
install -m 755 "$program" "$destination/usr/bin/vfio-agent"
cp -R "$installed/share/." "$destination/usr/share/"
rm -rf "$destination"/usr/share/{man,bash-completion,zsh,fish}
libraries
while read -r library; do take "$library" 755; done <"$lists/libraries"
take /usr/share/misc/pci.ids 644
take /usr/lib/os-release 644
ln -s ../usr/lib/os-release "$destination/etc/os-release"
# uid 0 has a name. Nobody logs in.
echo 'root:x:0:0:root:/:/usr/sbin/nologin' >"$destination/etc/passwd"
echo 'root:x:0:' >"$destination/etc/group"
take_packages
check_libraries
find "$destination" -exec touch -h -d "@${SOURCE_DATE_EPOCH:-0}" {} +
du -sh "$destination" | sed 's/\t.*//'
