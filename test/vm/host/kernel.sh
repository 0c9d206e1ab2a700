# Debian's kernel, unpacked below the cache and never installed. Sourced by run.sh.

# find_kernel CACHE: sets `kernel` (the unpacked package) and `release`. False where the package is
# neither in the cache nor to be had; `reason` says why.
find_kernel() {
  local cache=$1
  kernel=$cache/kernel
  if [[ ! -e $kernel/complete ]] && ! fetch_kernel "$cache"; then return 1; fi
  local modules=("$kernel"/lib/modules/*)
  release=${modules[0]##*/}
}

fetch_kernel() {
  local cache=$1 package
  package=$(apt-cache depends linux-image-amd64 2>&1 | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p')
  if [[ -z $package ]]; then
    reason="apt knows no linux-image-amd64 (not Debian, or apt-get update has never run)"
    return 1
  fi
  mkdir -p "$cache/download"
  if ! (cd "$cache/download" && apt-get -q download "$package" >log 2>&1); then
    reason="apt-get download $package failed: $(grep -m1 '^E:' "$cache/download/log")"
    return 1
  fi
  rm -rf "$kernel"
  # The mark comes last: an unpacking that was interrupted starts again.
  dpkg -x "$cache/download/$package"_*.deb "$kernel" && touch "$kernel/complete" && return 0
  reason="$package cannot be unpacked"
  return 1
}
