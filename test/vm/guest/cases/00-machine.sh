# The machine is the one that the other cases are written for: without this, a failure further
# down would say nothing about the agent.

expect_group() { # SIZE ADDRESS...: these are in one group, which has SIZE members.
  size=$1
  shift
  group_of "$1"
  first=$group
  for address in "$@"; do
    group_of "$address"
    [ "$group" = "$first" ] || fail "$address is in group $group, $1 in $first"
  done
  set -- "/sys/kernel/iommu_groups/$first/devices/"*
  [ $# = "$size" ] || fail "group $first has $# members: $*"
}

kernel_groups() {
  expect_group 1 "$LONE_NIC"
  expect_group 2 "$CARD_NIC" "$CARD_AUDIO"
  expect_group 4 "$OPEN_PORT0" "$OPEN_PORT1" "$OPEN_NIC0" "$OPEN_NIC1"
  expect_group 1 "$SWITCH"
  expect_group 2 "$SWITCH_PORT0" "$SWITCH_NIC0"
  expect_group 2 "$SWITCH_PORT1" "$SWITCH_NIC1"
  expect_group 3 "$BRIDGE" "$CONVENTIONAL_NIC" "$CONVENTIONAL_EDU"
  expect_group 1 "$PHYSICAL_FUNCTION"
  expect_group 2 "$H100" "$H100_AUDIO"
}
check "the kernel makes the groups that the machine is built for" kernel_groups

host_drivers() {
  for entry in $HOST_DRIVERS; do expect_driver "${entry%%=*}" "${entry#*=}"; done
}
check "every device is with its host driver" host_drivers

multipath() {
  until_true 20 has_disk || fail "/dev/$disk is no disk"
  set -- "$PCI/devices/$PHYSICAL_FUNCTION"/nvme/nvme*/nvme*c*n1
  [ "$(cat "$1/hidden")" = 1 ] || fail "$1 is no hidden path"
}
check "the NVMe disk is a multipath disk, with a hidden path below its controller" multipath

nvidia_ids() {
  read -r vendor <"$PCI/devices/$H100/vendor"
  read -r device <"$PCI/devices/$H100/device"
  read -r class <"$PCI/devices/$H100/class"
  read -r node <"$PCI/devices/$H100/numa_node"
  [ "$vendor $device $class $node" = "0x10de 0x2330 0x030200 1" ] ||
    fail "$H100 is $vendor $device $class on node $node"
}
check "the H100 has NVIDIA's ids and sits on NUMA node 1" nvidia_ids

by_hand() {
  load_vfio
  bind_by_hand "$H100" vfio-pci
  bind_by_hand "$H100_AUDIO" vfio-pci
  expect_usable "$H100"
  expect_said probe.log "id=10de:2330"
  expect_usable "$H100_AUDIO"
}
check "a group bound by hand opens for a guest" by_hand

not_viable() {
  load_vfio
  bind_by_hand "$CARD_NIC" vfio-pci
  group_of "$CARD_NIC"
  vfio-probe group "$group" >probe.log
  code=$?
  [ "$code" = 3 ] || fail "vfio-probe ended with $code instead of 3"
  bind_by_hand "$CARD_AUDIO" none
  expect_usable "$CARD_NIC"
}
check "a group with one function left to its host driver is not viable" not_viable

held_by_hand() {
  load_vfio
  bind_by_hand "$LONE_NIC" vfio-pci
  hold "$LONE_NIC"
  (echo "$LONE_NIC" >"$PCI/drivers/vfio-pci/unbind" && echo >unbound) &
  until_true 10 said probe.log event=request || fail "the kernel did not ask for the device"
  [ -e unbound ] && fail "the unbind did not wait for the holder"
  let_go
  until_true 10 test -e unbound || fail "the unbind did not end with the holder"
  expect_driver "$LONE_NIC" none
}
check "unbinding a held device waits for its holder" held_by_hand
