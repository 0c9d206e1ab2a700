#!/bin/bash
# The whole main job on a simulated node, from a clean checkout: install, build, plan, bind, serve
# a kubelet, give back. As root on Debian 12. Nothing of this machine is changed but the packages
# that get installed; the node, the kubelet and all directories are temporary.
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$source_dir"
build=build/release
agent=$build/vfio-agent
machine=test/machines/hgx-8gpu.yaml
resource=nvidia.com/GH100_H100_SXM5_80GB
gpus=8
work=
sim='' daemon='' kubelet=''

section() { printf '\n=== %s\n\n' "$*"; }

fail() {
  echo "quickstart: $*" >&2
  exit 1
}

# The daemon first: it must not see its node go away. The mount must be gone before its folder.
# Nothing here may cut the rest short, so errors do not count.
clean_up() {
  local pid
  set +e
  for pid in $daemon $kubelet $sim; do
    kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
  done
  [[ -n $work ]] || return 0
  mountpoint -q "$work/node" && umount -l "$work/node"
  mountpoint -q "$work/node" || rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

check_machine() {
  ((EUID == 0)) || fail "run it as root: it installs packages and mounts the simulated node"
  packaging/install-dependencies.sh --build --simulate --run
  [[ -c /dev/fuse ]] || fail "/dev/fuse is missing (modprobe fuse; in a container: --device /dev/fuse)"
}

# Quiet unless it fails; then the end of the log, which stays.
build_programs() {
  local log started=$SECONDS
  mkdir -p "$build"
  log=$source_dir/$build/quickstart.log
  : >"$log"
  if [[ ! -e $build/build.ninja ]]; then
    echo "configuring and building below $build: some minutes, once"
    cmake --preset release >>"$log" 2>&1 || build_failed "$log"
  fi
  cmake --build "$build" --parallel "$(nproc)" --target vfio-agent sim-node fake-kubelet \
    >>"$log" 2>&1 || build_failed "$log"
  echo "$("$agent" --version), built in $((SECONDS - started)) s"
}

build_failed() {
  tail -n 40 "$1" >&2
  fail "the build failed; its whole log: $1"
}

start_node() {
  local line
  work=$(mktemp -d)
  mkdir "$work"/{node,kubelet,device-plugins,state}
  mkfifo "$work/ready"
  "$build/test/sim/sim-node" --machine "$machine" --mount "$work/node" \
    >"$work/ready" 2>"$work/node.log" &
  sim=$!
  read -r -t 30 line <"$work/ready" || fail "the simulated node did not start: $(cat "$work/node.log")"
  sed -n 's/^machine: /it is /p' "$machine"
  echo "its /sys, /proc and /dev are below $work/node and answer writes as a kernel does"
}

# ask COMMAND...: one command to the fake kubelet; its answer, a JSON line, is in `answer`.
ask() {
  echo "$*" >&"${KUBELET[1]}"
  read -r -t 90 answer <&"${KUBELET[0]}" || fail "the fake kubelet does not answer"
  [[ $answer == '{"ok":true'* ]] && return
  tail -n 5 "$work/daemon.log" >&2
  fail "kubelet: $*: $answer"
}

start_kubelet() {
  local line
  coproc KUBELET {
    exec "$build/test/kubelet/fake-kubelet" --dir "$work/device-plugins" \
      --root-dir "$work/kubelet" 2>"$work/kubelet.log"
  }
  kubelet=$KUBELET_PID
  read -r -t 30 line <&"${KUBELET[0]}" || fail "the fake kubelet did not start: $(cat "$work/kubelet.log")"
  [[ $line == '{"ready":true}' ]] || fail "the fake kubelet did not start: $line"
}

start_daemon() {
  echo "vfio-agent run --root NODE --device-plugin-dir … --kubelet-root-dir … --state-dir …"
  "$agent" run --root "$work/node" --device-plugin-dir "$work/device-plugins" \
    --kubelet-root-dir "$work/kubelet" --state-dir "$work/state" 2>"$work/daemon.log" &
  daemon=$!
  ask wait "$resource" "$gpus" 60
  grep 'event=bind_done' "$work/daemon.log" | sed -E 's/^ts=[^ ]* level=[a-z]* /  /'
}

show_resources() {
  ask list
  echo "the kubelet now counts: $resource: $gpus"
  grep -o '{"id":"[^}]*}' <<<"$answer" |
    sed -E 's/.*"id":"([^"]*)","health":"([^"]*)","numa":\[([^]]*)\].*/  \1  \2  NUMA node \3/'
}

show_allocation() {
  local id
  id=$(grep -o '"id":"[^"]*"' <<<"$answer" | head -n 1 | cut -d'"' -f4)
  ask allocate "$resource" "$id"
  echo "what a virtual machine's pod gets for $id (Allocate):"
  grep -o '"PCI_RESOURCE_[^"]*":"[^"]*"' <<<"$answer" | sed -E 's/"([^"]*)":"([^"]*)"/  variable  \1=\2/'
  grep -o '"host_path":"[^}]*' <<<"$answer" |
    sed -E 's/"host_path":"([^"]*)".*"permissions":"([^"]*)".*/  device    \1 (\2)/'
}

stop_daemon() {
  local started code=0
  started=$(date +%s%N)
  kill -TERM "$daemon"
  wait "$daemon" || code=$?
  daemon=
  echo "SIGTERM: the daemon left after $((($(date +%s%N) - started) / 1000000)) ms with code $code;" \
    "guests would keep their devices"
  ((code == 0)) || fail "the daemon's last lines: $(tail -n 3 "$work/daemon.log")"
}

show_this_machine() {
  section "This machine"
  if [[ -z $(ls /sys/class/iommu 2>/dev/null) ]]; then
    echo "no IOMMU is on here (/sys/class/iommu is empty), so there is no plan of its own to show"
    return
  fi
  echo "what \`vfio-agent bind\` would do here (only read, nothing is changed):"
  "$agent" plan
}

section "What is needed"
check_machine
echo "all packages are installed"
section "Build"
build_programs
section "A simulated node"
start_node
section "The plan: vfio-agent plan"
"$agent" plan --root "$work/node"
section "The daemon binds, and registers with a (fake) kubelet"
start_kubelet
start_daemon
section "What the kubelet sees"
show_resources
echo
show_allocation
section "The daemon goes, the devices stay: vfio-agent list"
stop_daemon
"$agent" list --root "$work/node"
section "Everything goes back to its driver: vfio-agent release"
"$agent" release --root "$work/node" --state-dir "$work/state"
show_this_machine
