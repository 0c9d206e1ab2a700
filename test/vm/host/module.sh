# vm_mdev.ko, the driver of module/, built for Debian's kernel with Debian's headers: these are
# unpacked below the cache and never installed. Sourced by run.sh.

# build_module CACHE RELEASE SOURCE: sets `module`. False where it cannot be built; `reason` says why.
build_module() {
  local cache=$1 release=$2 source=$3 headers
  headers=$cache/headers-$release
  module=$cache/vm_mdev-$release.ko
  local tool
  for tool in make gcc-12; do
    command -v "$tool" >/dev/null && continue
    reason="$tool is missing (package $tool)"
    return 1
  done
  if [[ ! -e $headers/complete ]] && ! fetch_headers "$cache" "$release" "$headers"; then return 1; fi
  [[ $module -nt $source/vm_mdev.c && $module -nt $source/Makefile ]] && return
  compile_module "$source" "$headers/usr/src/linux-headers-$release" "$cache/module"
}

fetch_headers() {
  local cache=$1 release=$2 headers=$3 package
  local packages=("linux-headers-$release" "linux-headers-${release%-*}-common" "linux-kbuild-${release%%.*}.$(
    cut -d. -f2 <<<"$release")")
  mkdir -p "$cache/download"
  rm -rf "$headers"
  for package in "${packages[@]}"; do
    if ! (cd "$cache/download" && apt-get -q download "$package" >log 2>&1); then
      reason="apt-get download $package failed: $(grep -m1 '^E:' "$cache/download/log")"
      return 1
    fi
    if ! dpkg -x "$cache/download/$package"_*.deb "$headers"; then
      reason="$package cannot be unpacked"
      return 1
    fi
  done
  # Debian's one line names the place where the package would be installed.
  local common=$headers/usr/src/${packages[1]}
  echo "include $common/Makefile" >"$headers/usr/src/${packages[0]}/Makefile"
  touch "$headers/complete"
}

# compile_module SOURCE HEADERS DIR: the kernel's build system writes beside its sources.
compile_module() {
  local source=$1 headers=$2 dir=$3
  rm -rf "$dir" && mkdir -p "$dir" && cp "$source"/vm_mdev.c "$source"/Makefile "$dir" &&
    make -C "$headers" M="$dir" modules >"$dir/log" 2>&1 && cp "$dir/vm_mdev.ko" "$module" && return
  reason="vm_mdev.ko cannot be built: $(grep -m1 -iE 'error|No such' "$dir/log")"
  return 1
}
