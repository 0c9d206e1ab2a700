# The guest's file system, as two archives that the kernel unpacks one after the other: the base
# (busybox, kernel modules), kept until the kernel or this file changes, and the parts under test.
# Uncompressed: the emulated processor would take longer to unpack than the host to read.
# Sourced by run.sh.

# Drivers of the host side and its file system, loaded at boot; vfio, which the agent has to load;
# and what a case loads.
host_modules=(e1000e e1000 snd_hda_intel snd_hda_codec_generic nvme virtio_pci ext4 crc32c_generic)
vfio_modules=(vfio vfio_iommu_type1 vfio_pci)
case_modules=(bochs aer_inject mdev)

# new_stage FILE: a folder beside FILE that becomes the guest's root, so all may enter it.
new_stage() {
  local stage
  stage=$(mktemp -d "$1.XXXXXX") && chmod 755 "$stage" && echo "$stage"
}

# pack DIR FILE
pack() { (cd "$1" && find . -print0 | cpio --quiet -0 -o -H newc -R 0:0) >"$2"; }

# build_base KERNEL RELEASE FILE
build_base() {
  local kernel=$1 release=$2 file=$3 stage module path
  [[ $file -nt ${BASH_SOURCE[0]} && $file -nt $kernel/complete ]] && return
  stage=$(new_stage "$file")
  mkdir -p "$stage"/{bin,dev,proc,sys,run,tmp,etc,var/lib,lib/modules/"$release"}
  cp "$(command -v busybox)" "$stage/bin/"
  for module in $(busybox --list); do
    [[ $module == busybox ]] || ln -s busybox "$stage/bin/$module"
  done
  depmod -b "$kernel" "$release"
  for module in "${host_modules[@]}" "${vfio_modules[@]}" "${case_modules[@]}"; do
    modprobe -d "$kernel" -S "$release" --show-depends "$module"
  done | sed -n 's/^insmod //p' | sort -u | while read -r path; do
    install -D -m 644 "$path" "$stage/lib/modules/$release/${path#*/lib/modules/"$release"/}"
  done
  cp "$kernel/lib/modules/$release"/modules.{order,builtin,builtin.modinfo} "$stage/lib/modules/$release/"
  depmod -b "$stage" "$release"
  printf '%s\n' root:x:0:0::/:/bin/sh nobody:x:65534:65534::/:/bin/sh >"$stage/etc/passwd"
  printf '%s\n' root:x:0: nogroup:x:65534: >"$stage/etc/group"
  pack "$stage" "$file.part" && mv "$file.part" "$file"
  rm -rf "$stage"
}

# add_program STAGE PROGRAM: the program, without what only a debugger needs, and the shared
# libraries that it asks for, at the paths where the host has them.
add_program() {
  local stage=$1 program=$2 library
  strip --strip-debug -o "$stage/bin/${program##*/}" "$program"
  { ldd "$program" 2>/dev/null || true; } | grep -o '/[^ ]*' | while read -r library; do
    [[ -e $stage$library ]] || install -D "$library" "$stage$library"
  done
}

# The libraries that a program opens by name at run time, as ldd does not see them.
add_library() {
  local stage=$1 name=$2 path library
  path=$(ldconfig -p | sed -n "s/^[[:space:]]*$name .*x86-64.* => //p" | head -n 1)
  [[ -n $path ]] || return 1
  for library in "$path" $(ldd "$path" | grep -o '/[^ ]*'); do
    [[ -e $stage$library ]] || install -D "$library" "$stage$library"
  done
}

# add_curl STAGE: what the agent talks to the API server with, or why it cannot.
add_curl() {
  add_library "$1" libcurl.so.4 || echo "libcurl.so.4 is missing (package libcurl4)" >"$1/guest/no-api"
}

# add_module STAGE: the driver of module/, or why there is none.
add_module() {
  if [[ -n $module ]]; then cp "$module" "$1/guest/vm_mdev.ko"; else echo "$reason" >"$1/guest/no-module"; fi
}

# build_image BASE SOURCE FILE PATTERN PROGRAM...
build_image() {
  local base=$1 source=$2 file=$3 pattern=$4 stage program
  shift 4
  stage=$(new_stage "$file")
  mkdir -p "$stage/bin" "$stage/usr/share/misc"
  cp -R "$source/guest" "$stage/guest"
  cp "$source/../../packaging/kustomize/overlays/unprivileged/daemonset.yaml" "$stage/guest/pod.yaml"
  install -m 755 "$stage/guest/init" "$stage/init"
  printf '%s\n' "$pattern" >"$stage/guest/only"
  cp /usr/share/misc/pci.ids "$stage/usr/share/misc/"
  for program in "$@"; do add_program "$stage" "$program"; done
  add_library "$stage" libkmod.so.2
  add_curl "$stage"
  add_module "$stage"
  pack "$stage" "$file.overlay"
  cat "$base" "$file.overlay" >"$file"
  rm -rf "$stage" "$file.overlay"
}
