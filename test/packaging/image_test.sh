#!/bin/bash
# The image of the Dockerfile's last stage, built and run without Docker: buildah lays the layers of the
# same file system, runc runs it in namespaces of its own, with a read-only root and two capabilities.
#
#   test/packaging/image_test.sh BUILD_DIR
#
# Exit codes: 0 passed, 1 it did not, 2 usage, 77 skipped (the reason is printed).
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
(($# == 1)) || {
  echo "usage: $0 BUILD_DIR" >&2
  exit 2
}
build=$(cd "$1" && pwd)
agent=$build/vfio-agent
machine=$source_dir/test/machines/hgx-8gpu.yaml
resource=nvidia.com/GH100_H100_SXM5_80GB
most_bytes=$((40 * 1024 * 1024))
work=
sim='' kubelet='' container=''
passed=0

skip() {
  echo "skipped: $*"
  exit 77
}

fail() {
  echo "image_test: $*" >&2
  if [[ -s $work/daemon.log ]]; then tail -n 20 "$work/daemon.log" >&2; fi
  exit 1
}

ok() {
  passed=$((passed + 1))
  echo "ok $*"
}

# Storage of its own: nothing of this machine's images is looked at or left behind.
buildah_() { buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }

# runc's state too; its containers end before the node that they look at.
runc_() { runc --root "$work/runc" "$@"; }

# Nothing here may cut the rest short, so errors do not count.
clean_up() {
  local pid
  set +e
  [[ -n $container ]] && runc_ delete --force "$container" 2>/dev/null
  for pid in $kubelet $sim; do
    kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
  done
  [[ -n $work ]] || return 0
  mountpoint -q "$work/node" && umount -l "$work/node"
  buildah_ umount --all >/dev/null 2>&1
  mountpoint -q "$work/node" || rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

find_tools() {
  local tool
  ((EUID == 0)) || skip "only root can make and run containers here"
  for tool in buildah runc dpkg-query; do
    command -v "$tool" >/dev/null || skip "$tool is missing (packages buildah, runc)"
  done
  [[ -c /dev/fuse ]] || skip "/dev/fuse is missing"
  work=$(mktemp -d)
  mkdir "$work"/{node,kubelet,device-plugins,state,context}
  export SOURCE_DATE_EPOCH=1700000000
}

# The image, as the Dockerfile's last stage has it; `build` is the folder that the first would make.
build_image() {
  cmake --install "$build" --component runtime --strip --prefix "$work/installed" >"$work/install.log" ||
    fail "cmake --install: $(tail -n 3 "$work/install.log")"
  "$source_dir/packaging/image/rootfs.sh" "$work/installed" "$work/context/image" >/dev/null
  sed -n '/^FROM scratch/,$p' "$source_dir/Dockerfile" >"$work/Dockerfile"
  grep -q '^COPY --from=build /image/ /$' "$work/Dockerfile" ||
    fail "the Dockerfile's last stage is not known here"
  lay_image one
  lay_image two
  cmp "$work/one" "$work/two" || fail "built twice the images differ"
  ok "the image is built, twice the same: $(cut -c 1-12 "$work/one")"
}

# lay_image FILE: its id, a hash of everything in it, goes to FILE.
lay_image() {
  buildah_ build --quiet --no-cache --isolation chroot --build-context "build=$work/context" \
    --file "$work/Dockerfile" --timestamp "$SOURCE_DATE_EPOCH" --tag vfio-agent:test "$work/context" \
    >"$work/$1" || fail "buildah could not build it"
}

check_size() {
  local size
  buildah_ push --quiet vfio-agent:test "oci-archive:$work/image.tar"
  size=$(stat -c %s "$work/image.tar")
  ((size < most_bytes)) || fail "the compressed image has $size bytes, more than $most_bytes"
  ok "compressed it has $((size / 1024)) KiB"
}

# What is in it, and what is not.
check_contents() {
  local name found
  found=$(buildah_ inspect --type image --format '{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}}' \
    vfio-agent:test)
  [[ $found == '[/usr/bin/vfio-agent] [run]' ]] || fail "entry point and command: $found"
  container_id=$(buildah_ from --pull-never vfio-agent:test)
  rootfs=$(buildah_ mount "$container_id")
  found=$(find "$rootfs" -type f -perm /111 -path '*bin/*' -printf '%P\n')
  [[ $found == usr/bin/vfio-agent ]] || fail "programs in the image: $found"
  for name in usr/share/misc/pci.ids usr/share/doc/vfio-agent/{copyright,sbom.spdx.json} etc/os-release; do
    [[ -s $rootfs/$name ]] || fail "$name is not in the image"
  done
  [[ -z $(find "$rootfs" -perm /6000 -o -perm /022 ! -type l) ]] || fail "setuid or writable by others: something"
  # Each library that the sources open by name is in it.
  found=$(grep -rhoE 'dlopen\("[^"]+"' "$source_dir"/{sysfs,agent,deviceplugin,iommu} | cut -d'"' -f2) ||
    fail "no library that the sources open by name is found"
  while read -r name; do
    [[ -n $(find "$rootfs" -name "$name") ]] || fail "$name is not in the image"
  done <<<"$found"
  ok "one program, its libraries and pci.ids, nothing else"
}

# inside NAME [--mount …]… -- COMMAND…: one container, to its end.
inside() {
  local name=$1
  shift
  "$source_dir/test/packaging/bundle.py" "$rootfs" "$work/bundle-$name" "$@"
  runc_ run --bundle "$work/bundle-$name" "image-test-$$-$name" </dev/null
}

# A machine that is itself a container may not let one be made in it.
try_runc() {
  inside try -- /usr/bin/vfio-agent --version >"$work/try" 2>&1 && return
  if grep -q 'runc run failed' "$work/try"; then skip "runc: $(tail -n 1 "$work/try")"; fi
  fail "vfio-agent --version in the image: $(cat "$work/try")"
}

start_node() {
  local line
  mkfifo "$work/ready"
  "$build/test/sim/sim-node" --machine "$machine" --mount "$work/node" >"$work/ready" 2>"$work/node.log" &
  sim=$!
  read -r -t 30 line <"$work/ready" || fail "the simulated node did not start: $(cat "$work/node.log")"
}

# On a machine that is very busy the look for who has a device open may run out of time, on either
# side, and the plan says so; so it is asked until both say the same.
check_plan() {
  local try
  for try in {1..10}; do
    inside "plan$try" --mount "$work/node:/node" -- /usr/bin/vfio-agent plan --root /node >"$work/plan"
    "$agent" plan --root "$work/node" >"$work/plan-here"
    diff "$work/plan-here" "$work/plan" >"$work/plan-differs" && return
  done
  fail "plan differs from what this machine's program says: $(head -n 5 "$work/plan-differs")"
}

check_commands() {
  local answer
  answer=$(inside version -- /usr/bin/vfio-agent version)
  [[ $answer == "$("$agent" version)" ]] || fail "version says: $answer"
  ok "version: $answer"
  check_plan
  grep -q "$resource" "$work/plan" || fail "plan does not name the resource: pci.ids was not read"
  ok "plan --root: as on the host, with names from pci.ids"
  inside doctor --mount "$work/node:/node" -- \
    /usr/bin/vfio-agent doctor --root /node -o json >"$work/doctor" || (($? == 3))
  grep -q '"schema": *"vfio-agent/doctor/v1"' "$work/doctor" ||
    fail "doctor says: $(head -c 300 "$work/doctor")"
  ok "doctor --root"
}

# ask COMMAND...: one command to the fake kubelet; its answer is in `answer`.
ask() {
  echo "$*" >&"${KUBELET[1]}"
  read -r -t 60 answer <&"${KUBELET[0]}" || fail "the fake kubelet does not answer"
  [[ $answer == '{"ok":true'* ]] || fail "kubelet: $*: $answer"
}

# ask_http PATH: the status line, from within the container's network, which is its own.
ask_http() {
  local pid
  pid=$(runc_ state "$container" | sed -nE 's/^ *"pid": ([0-9]+),$/\1/p')
  timeout 10 nsenter --target "$pid" --net bash -c "exec 3<>/dev/tcp/127.0.0.1/9431 &&
    printf 'GET %s HTTP/1.0\r\n\r\n' '$1' >&3 && head -n 1 <&3" 2>&1
}

# The daemon in a container, the kubelet outside: they meet in the folder that both have.
check_daemon() {
  local line id code=0
  coproc KUBELET {
    exec "$build/test/kubelet/fake-kubelet" --dir "$work/device-plugins" --root-dir "$work/kubelet" \
      2>"$work/kubelet.log"
  }
  kubelet=$KUBELET_PID
  read -r -t 30 line <&"${KUBELET[0]}" || fail "the fake kubelet did not start: $(cat "$work/kubelet.log")"
  container=image-test-$$-daemon
  inside daemon --mount "$work/node:/node" --mount "$work/state:/var/lib/vfio-agent" \
    --mount "$work/kubelet:/var/lib/kubelet" --mount "$work/device-plugins:/var/lib/kubelet/device-plugins" \
    -- /usr/bin/vfio-agent run --root /node 2>"$work/daemon.log" &
  daemon=$!
  ask wait "$resource" 8 60
  ask list
  id=$(grep -o '"id":"[^"]*"' <<<"$answer" | head -n 1 | cut -d'"' -f4)
  ask allocate "$resource" "$id"
  grep -q "PCI_RESOURCE_NVIDIA_COM_GH100_H100_SXM5_80GB\":\"$id\"" <<<"$answer" || fail "allocate: $answer"
  ok "the daemon binds eight groups, registers them, and answers Allocate"
  # What it tells of itself is made known a moment after the kubelet has the devices.
  for _ in {1..20}; do
    answer=$(ask_http /readyz) && [[ $answer == *' 200 '* ]] && break
    sleep 0.5
  done
  [[ $answer == *' 200 '* ]] || fail "/readyz: $answer"
  ok "/readyz says 200: libcivetweb was found"
  runc_ exec "$container" /usr/bin/vfio-agent status >"$work/status" || fail "status: $(cat "$work/status")"
  grep -q "$resource" "$work/status" || fail "status: $(cat "$work/status")"
  ok "status, asked in the container"
  runc_ kill "$container" TERM
  wait "$daemon" || code=$?
  container=
  ((code == 0)) || fail "SIGTERM: the daemon ended with $code"
  ok "SIGTERM ends it with 0"
}

find_tools
build_image
check_size
check_contents
try_runc
start_node
check_commands
check_daemon
echo "$passed passed, 0 failed"
