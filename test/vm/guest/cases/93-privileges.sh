# What the agent may do on a real kernel: as root that has dropped what it does not use, and in the
# environment of the overlay without `privileged: true`, from its manifest.

# What the runtimes allow: every node may be made, and these few opened.
make_device_cgroup() {
  [ -d /run/devices/pod ] && return
  mkdir -p /run/devices
  mount -t cgroup -o devices devices /run/devices || fail "no device cgroup"
  mkdir /run/devices/pod
  echo a >/run/devices/pod/devices.deny
  for device in "c *:* m" "b *:* m" "c 1:3 rwm" "c 1:5 rwm" "c 1:7 rwm" "c 1:8 rwm" "c 1:9 rwm"; do
    echo "$device" >/run/devices/pod/devices.allow
  done
}

# pod CHANGE...: `inside` is that environment, changed by options of pod-run.
pod() {
  make_device_cgroup
  mkdir -p "$TMP/plugins" "$TMP/kubelet/pod-resources" "$STATE"
  inside="/guest/deny-devices pod-run --manifest /guest/pod.yaml"
  inside="$inside --at /var/lib/kubelet/device-plugins=$TMP/plugins"
  inside="$inside --at /var/lib/kubelet/pod-resources=$TMP/kubelet/pod-resources"
  inside="$inside --at /var/lib/vfio-agent=$STATE $*"
}

# pod_agent ARGUMENT...: as `agent`, in the pod.
pod_agent() {
  # shellcheck disable=SC2086
  timeout 60 $inside vfio-agent "$@" >out 2>err
  code=$?
}

capabilities_of() { capabilities=$(sed -n "s/^$2:.0*//p" "/proc/$1/status"); }

# SYS_MODULE, SYS_PTRACE, SYS_ADMIN, DAC_READ_SEARCH; the loop's own is SYS_ADMIN.
daemon_drops() {
  serve_h100
  expect_driver "$H100" vfio-pci
  for set in CapPrm CapBnd; do
    capabilities_of "$daemon" "$set"
    [ "$capabilities" = 290004 ] || fail "$set is $capabilities"
  done
  capabilities_of "$daemon" CapEff
  [ "$capabilities" = 200000 ] || fail "CapEff is $capabilities"
  said daemon.log privileges_missing && fail "it says that it lacks something"
  stop_daemon
  expect_exit 0
}
check "a daemon that has dropped all but four capabilities loads vfio-pci, binds and serves" \
  daemon_drops

pod_serves() {
  load_vfio
  start_kubelet
  pod
  start_daemon
  expect_ask wait "$H100_RESOURCE" 1 30
  expect_ask allocate "$H100_RESOURCE" "$H100"
  expect_usable "$H100"
  said daemon.log 'missing="CAP_SYS_ADMIN, CAP_SYS_MODULE"' || fail "it does not say what it lacks"
  said daemon.log uevents_unavailable && fail "no events come"
  stop_daemon
  expect_exit 0
  pod_agent release --device-plugin-dir "$TMP/plugins" --kubelet-root-dir "$TMP/kubelet"
  expect_exit 0
  expect_driver "$H100" none
  expect_driver "$H100_AUDIO" snd_hda_intel
}
check "without privileged, behind a device cgroup, the daemon binds, serves, and releases" pod_serves

# release_held CHANGE...: a guest has the NIC; then `release` in the pod.
release_held() {
  load_vfio
  select_devices "$LONE_NIC"
  agent bind --config config.yaml
  expect_exit 0
  hold "$LONE_NIC"
  pod "$@"
  expect_unchanged pod_agent release --config config.yaml "$LONE_NIC"
  expect_exit 3
}

pod_sees_holder() {
  release_held
  expect_told "pid $holder (vfio-probe"
}
check "behind a device cgroup a held group is known by the process that has it" pod_sees_holder

pod_without_ptrace() {
  release_held --without SYS_PTRACE
  expect_told "a process perhaps: not all can be seen, and the group's node may not be opened"
}
check "behind a device cgroup and without CAP_SYS_PTRACE a bound group counts as held" \
  pod_without_ptrace

# Another user's process has the sound open that is to be unbound.
pod_without_search() {
  load_vfio
  select_devices "$CARD_NIC"
  until_true 20 has_sound || fail "$CARD_AUDIO plays no sound"
  node=$sound
  chmod 666 "$node"
  later "chmod 600 $node"
  in_background su -s /bin/sh nobody -c "exec sleep 1000 <$node"
  until_true 10 is_called "$started_pid" sleep || fail "nobody has $node open"
  pod
  pod_agent plan --config config.yaml
  expect_told "(sleep)"
  pod --without DAC_READ_SEARCH
  pod_agent plan --config config.yaml
  expect_told "run the agent with hostPID, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"
}
check "without CAP_DAC_READ_SEARCH another user's process is unknown, not absent" pod_without_search

pod_config_space() {
  pod --with SYS_ADMIN
  pod_agent explain "$H100"
  expect_exit 0
  grep -qi unknown out && fail "with CAP_SYS_ADMIN ACS is unknown"
  pod
  pod_agent explain "$H100"
  expect_exit 0
  grep -qi unknown out || fail "without CAP_SYS_ADMIN ACS is known"
}
check "CAP_SYS_ADMIN is what ACS is known by, also for uid 0" pod_config_space

pod_modules() {
  [ ! -d /sys/module/vfio_pci ] || fail "vfio-pci is loaded already"
  select_devices "$LONE_NIC"
  pod
  expect_unchanged pod_agent bind --config config.yaml
  [ "$code" != 0 ] || fail "it binds without vfio-pci"
  expect_told permission-denied
  expect_told "CAP_SYS_MODULE"
  pod --with SYS_MODULE --without /lib/modules
  expect_unchanged pod_agent bind --config config.yaml
  [ "$code" != 0 ] || fail "it binds without /lib/modules"
  expect_told vfio-driver-missing
  pod --with SYS_MODULE
  pod_agent bind --config config.yaml
  expect_exit 0
  expect_driver "$LONE_NIC" vfio-pci
}
check "CAP_SYS_MODULE is what vfio-pci is loaded by, also below the runtime's seccomp" pod_modules

pod_without_host_pid() {
  load_vfio
  select_devices "$LONE_NIC"
  for interface in "$PCI/devices/$LONE_NIC"/net/*; do interface=${interface##*/}; done
  later "ip link set $interface down"
  ip link set "$interface" up
  pod
  pod_agent plan --config config.yaml
  grep -q "without hostPID" out && fail "with hostPID it does not see the host"
  pod --without hostPID
  pod_agent plan --config config.yaml
  expect_told "without hostPID"
  expect_told in-use-network
}
check "without hostPID an interface that is up is in use, and the text says why" pod_without_host_pid

pod_read_only() {
  load_vfio
  select_devices "$LONE_NIC"
  for path in /sys/devices /sys/bus/pci; do
    pod --read-only "$path"
    expect_unchanged pod_agent bind --config config.yaml
    expect_exit 1
    expect_told permission-denied
    expect_told "Read-only file system"
  done
}
check "where /sys/devices or /sys/bus/pci is read-only nothing changes, and permission-denied says so" \
  pod_read_only

# Waits as 70-blocked.sh does.
pod_stuck() {
  load_vfio
  pod
  start_blocked --unbind-timeout 2s
  expect_stuck
  line=$(grep code=unbind-stuck daemon.log)
  echo "# ${line##* stack=}"
  echo "$line" | grep -qE ' stack=[a-z_0-9]+( |$)' || fail "the stack is not one function: $line"
  end_sound
  until_true 20 said daemon.log event=bind_returned || fail "the daemon does not see the end of it"
  stop_daemon
  expect_given_back
}
check "without CAP_SYS_ADMIN a write that does not return is told by the one function it waits in" \
  pod_stuck

# The line of the first region that has an address.
pod_iomem() {
  pod --with SYS_ADMIN
  # shellcheck disable=SC2086
  $inside grep -m 1 -vE '^ *0+-0+ ' /proc/iomem || fail "with CAP_SYS_ADMIN all ranges are zero"
  pod
  # shellcheck disable=SC2086
  $inside grep -m 1 -vE '^ *0+-0+ ' /proc/iomem && fail "without CAP_SYS_ADMIN there is a range"
  true
}
check "CAP_SYS_ADMIN is what the boot console's memory is known by" pod_iomem

# As libvirt does for its machines' user. CAP_DAC_OVERRIDE, which would open it, is not the agent's.
others_node() {
  load_vfio
  select_devices "$LONE_NIC"
  serve_chosen
  hold "$LONE_NIC"
  chown 65534 "/dev/vfio/$group"
  expect_unchanged agent release --config config.yaml --device-plugin-dir "$TMP/plugins" \
    --kubelet-root-dir "$TMP/kubelet" "$LONE_NIC"
  expect_exit 3
  stop_daemon
  expect_exit 0
  expect_unchanged agent release --config config.yaml "$LONE_NIC"
  expect_exit 3
  expect_told "pid $holder (vfio-probe"
}
check "a held group whose node is another user's is held all the same" others_node
