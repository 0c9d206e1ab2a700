# What the host does with a device, refused before the first write: each as a real driver shows it.

# guard_overrules ADDRESS: an operator has overruled the guard for this one.
guard_overrules() { printf 'guard: {override: ["%s"]}\n' "$1" >>config.yaml; }

# expect_offered ADDRESS: nothing speaks against binding any more.
expect_offered() {
  plan --config config.yaml
  group_of "$1"
  expect_line "groups[$group].verdict=bind" refusals.size=0
}

# interface_of ADDRESS, node_of FILE: names that the kernel gives.
interface_of() { interface=$(ls "$PCI/devices/$1/net"); }
number_of() { IFS=: read -r major minor <"$1/dev"; }
find_controller() { controller=$(ls "$PCI/devices/$PHYSICAL_FUNCTION/nvme"); }
find_disk() {
  find_controller
  until_true 20 has_disk || fail "there is no disk /dev/$disk"
}

with_address() {
  interface_of "$CARD_NIC"
  later ip link set "$interface" down
  later ip addr flush dev "$interface"
  ip addr add 192.0.2.2/24 dev "$interface" && ip link set "$interface" up ||
    fail "$interface cannot have an address"
}

network_address() {
  with_address
  select_devices "$CARD_NIC"
  expect_refused in-use-network "$CARD_NIC"
  expect_told "carries $interface, which is up with an address"
  ip addr flush dev "$interface"
  expect_offered "$CARD_NIC"
}
check "a NIC whose interface has an address is refused by the interface's name" network_address

# It is the companion's neighbour that the host needs: the group is refused whole.
default_route() {
  with_address
  ip route add default via 192.0.2.1 || fail "no default route"
  select_devices "$CARD_AUDIO"
  expect_refused in-use-network "$CARD_NIC"
  expect_told "carries $interface, which is up with the default route"
}
check "a group whose other function carries the default route is refused" default_route

# Also from a mount namespace that does not show the mount, as a container's.
mounted_disk() {
  find_disk
  mkdir -p /run/boot
  later umount /run/boot
  mke2fs "/dev/$disk" >mke2fs.log 2>&1 && mount -t ext4 "/dev/$disk" /run/boot ||
    fail "/dev/$disk cannot be mounted"
  select_devices "$PHYSICAL_FUNCTION"
  expect_refused in-use-storage "$PHYSICAL_FUNCTION"
  expect_told "carries $disk, mounted on /run/boot"
  unshare -m sh -c "umount /run/boot && ! grep -q /run/boot /proc/self/mountinfo &&
    exec vfio-agent bind --config config.yaml" >out 2>err
  code=$?
  expect_exit 3
  expect_told "mounted on /run/boot"
  umount /run/boot
  expect_offered "$PHYSICAL_FUNCTION"
}
check "an NVMe controller whose disk is mounted is refused by the mount point" mounted_disk

swap() {
  find_disk
  later swapoff -a
  mkswap "/dev/$disk" >mkswap.log && swapon "/dev/$disk" || fail "no swap on /dev/$disk"
  select_devices "$PHYSICAL_FUNCTION"
  expect_refused in-use-storage "$PHYSICAL_FUNCTION"
  expect_told "carries $disk, used as swap"
}
check "an NVMe controller whose disk is swapped to is refused" swap

character_device() {
  find_controller
  open_node "/dev/$controller"
  select_devices "$PHYSICAL_FUNCTION"
  expect_refused in-use-holder "$PHYSICAL_FUNCTION"
  expect_told "is held open by pid $started_pid (sleep): /dev/$controller"
  kill "$started_pid"
  wait "$started_pid"
  expect_offered "$PHYSICAL_FUNCTION"
}
check "a device whose node a process has open is refused by number and command" character_device

# The console moves to the first frame buffer that there is.
console() {
  modprobe bochs || fail "bochs cannot be loaded"
  later modprobe -r bochs
  until_true 10 driver_is "$DISPLAY0" bochs-drm || fail "$DISPLAY0 has no driver"
  select_devices "$DISPLAY0"
  expect_refused in-use-display "$DISPLAY0"
  expect_told "carries fb0, which shows the console"
  open_node /dev/dri/card0
  agent bind --config config.yaml
  expect_exit 3
  expect_told "pid $started_pid (sleep): /dev/dri/card0"
}
check "a display that shows the console is refused, and whoever has it open is named" console

# With a node of its own, in a mount namespace of its own, removed after it was opened: what is
# left is the device's number.
hidden_holder() {
  until_true 20 has_sound || fail "$CARD_AUDIO plays no sound"
  number_of "$PCI/devices/$CARD_AUDIO/sound/card"*/controlC*
  mkdir own
  in_background unshare -m sh -c "mount -t tmpfs none own && mknod own/node c $major $minor &&
    exec 3<own/node && rm own/node && echo open && exec sleep 1000" >holder.log
  until_true 10 said holder.log open || fail "the holder has not opened the node"
  until_true 10 is_called "$started_pid" sleep || fail "the holder does not sleep"
  select_devices "$CARD_NIC"
  expect_refused in-use-holder "$CARD_AUDIO"
  expect_told "pid $started_pid (sleep)"
}
check "a process in another mount namespace whose node is gone is found all the same" hidden_holder

# nvme's unbind does not wait for those who have the controller's node open.
overruled() {
  find_controller
  open_node "/dev/$controller"
  user=$started_pid
  select_devices "$PHYSICAL_FUNCTION"
  guard_overrules "$PHYSICAL_FUNCTION"
  serve_chosen
  for text in event=warning in-use-holder "pid $user (sleep)" "overruled by guard.override"; do
    grep in-use-holder daemon.log | grep -qF -- "$text" || fail "the log does not say '$text'"
  done
  stop_daemon
  agent release --config config.yaml
  expect_exit 0
  expect_driver "$PHYSICAL_FUNCTION" nvme
}
check "a guard that the operator overrules is told in the log, and the device is bound" overruled

operators_override() {
  echo e1000e >"$PCI/devices/$LONE_NIC/driver_override"
  select_devices "$LONE_NIC"
  expect_refused foreign-manager "$LONE_NIC"
  expect_told "driver_override of $LONE_NIC"
  guard_overrules "$LONE_NIC"
  agent bind --config config.yaml
  expect_exit 0
  expect_usable "$LONE_NIC"
  agent release --config config.yaml
  expect_exit 0
  expect_driver "$LONE_NIC" e1000e
  override_of "$LONE_NIC"
  [ "$override" = e1000e ] || fail "the operator's override reads '$override' now"
}
check "a driver_override that an operator has set is refused, or put back by release" \
  operators_override
