# Mediated devices of a driver that the kernel does not come with: guest/mdev.sh.

have_parents || return

kernel_instances() {
  load_parents
  make_by_hand "$PARENT0" nvidia-1 "$BY_HAND" || fail "the kernel makes no instance"
  room "$PARENT0" nvidia-1
  [ "$room" = 3 ] || fail "there is room for $room"
  room "$PARENT0" nvidia-2
  [ "$room" = 0 ] || fail "there is room for $room of another type"
  if make_by_hand "$PARENT0" nvidia-1 "$BY_HAND"; then fail "the same uuid was taken twice"; fi
  if make_by_hand "$PARENT0" nvidia-2 "$BY_HAND"; then fail "two types on one parent"; fi
  expect_usable "$BY_HAND"
  expect_said probe.log "id=10de:1eb8"
  group_of "$BY_HAND"
  set -- "/sys/kernel/iommu_groups/$group/devices/"*
  [ "$*" = "/sys/kernel/iommu_groups/$group/devices/$BY_HAND" ] || fail "group $group has $*"
  read -r name <"/sys/kernel/iommu_groups/$group/name"
  [ "$name" = vfio-noiommu ] || fail "the group of an instance is called $name"
  echo 1 >"$MDEV/$BY_HAND/remove"
  [ ! -e "$MDEV/$BY_HAND" ] || fail "the instance is still there"
  [ ! -e "/dev/vfio/$group" ] || fail "/dev/vfio/$group is still there"
}
check "mdev: the kernel makes instances of a type, each in a group of its own" kernel_instances

# While the removal of an instance waits for who has it open.
kernel_removal() {
  load_parents
  make_by_hand "$PARENT0" nvidia-1 "$BY_HAND"
  group_of "$BY_HAND"
  held_group=$group
  hold "$BY_HAND"
  in_background sh -c "echo 1 >$MDEV/$BY_HAND/remove"
  until_true 10 said probe.log event=request || fail "the removal does not wait"
  directory=$PCI/devices/$PARENT0/$BY_HAND
  for path in "$MDEV/$BY_HAND" "$directory/mdev_type" "$directory/driver" "$directory/remove" \
    "$PCI/devices/$PARENT0/mdev_supported_types/nvidia-1/devices/$BY_HAND"; do
    [ ! -L "$path" ] && [ ! -e "$path" ] || fail "$path is still there"
  done
  for path in "$directory" "/sys/kernel/iommu_groups/$held_group/devices/$BY_HAND" \
    "/dev/vfio/$held_group"; do
    [ -e "$path" ] || fail "$path is gone"
  done
  room "$PARENT0" nvidia-1
  [ "$room" = 3 ] || fail "there is room for $room"
  if make_by_hand "$PARENT0" nvidia-1 "$BY_HAND"; then fail "the same uuid was taken twice"; fi
  let_go
  until_true 10 has_room 4 || fail "the removal did not end with the holder"
  [ ! -e "/dev/vfio/$held_group" ] || fail "/dev/vfio/$held_group is still there"
}
has_room() { room "$PARENT0" nvidia-1 && [ "$room" = "$1" ]; }
check "mdev: an instance that is being removed is gone from the bus while it is held" kernel_removal

made_and_removed() {
  load_parents
  select_mdevs "{GRID T4-1Q: 2}"
  plan --config config.yaml
  expect_exit 0
  expect_line actions.size=4
  agent bind --config config.yaml
  expect_exit 0
  expect_instances 2 "$OWN0"
  expect_instances 2 "$OWN1"
  expect_instances 4
  expect_parents
  before=$instances
  for uuid in $instances; do expect_usable "$uuid"; done
  count_writes
  agent bind --config config.yaml
  expect_exit 0
  expect_no_writes
  agent release --config config.yaml
  expect_exit 0
  expect_instances 0
  expect_parents
  agent bind --config config.yaml
  expect_exit 0
  find_instances
  [ "$instances" = "$before" ] || fail "the uuids were$before and are$instances"
}
check "mdev: bind makes instances with the same uuids each time, release removes them" made_and_removed

typed_by_hand() {
  load_parents
  select_mdevs "{nvidia-2: 1}"
  agent plan --config config.yaml
  expect_exit 0
  sh -e out >by-hand.log 2>&1 || fail "the plan's commands fail: $(tail -n 1 by-hand.log)"
  expect_instances 1 "$OWN0"
  expect_instances 1 "$OWN1"
  plan --config config.yaml
  first_of "$OWN0"
  expect_line actions.size=0 "resources[nvidia.com/GRID_T4-2Q].units[$uuid].state=ready"
}
check "mdev: the printed plan, typed by hand, does what bind would do" typed_by_hand

served() {
  load_parents
  select_mdevs "{GRID T4-1Q: 1}"
  start_kubelet
  start_daemon --config "$TMP/config.yaml"
  expect_ask wait "$SMALL_RESOURCE" 2 30
  first_of "$OWN1"
  expect_ask allocate "$SMALL_RESOURCE" "$uuid"
  expect_line "envs.$SMALL_VARIABLE=$uuid"
  group_of "$uuid"
  grep -o 'host_path=.*' lines | sort >nodes
  printf 'host_path=%s\n' "/dev/vfio/$group" /dev/vfio/vfio >expected
  cmp -s nodes expected || fail "Allocate gives $(tr '\n' ' ' <nodes)"
  expect_usable "$uuid"
  stop_daemon
  expect_exit 0
  expect_instances 2
}
check "mdev: Allocate gives the uuid and the instance's own group, and it opens for a guest" served

exhausted() {
  load_parents
  select_mdevs "{GRID T4-1Q: 5}"
  agent bind --config config.yaml
  expect_told "1 more of type GRID T4-1Q (nvidia-1) are wanted than the kernel has room for"
  expect_instances 4 "$OWN0"
  select_mdevs "{GRID T4-2Q: 1}"
  count_writes
  agent bind --config config.yaml
  expect_told "1 more of type GRID T4-2Q (nvidia-2) are wanted than the kernel has room for"
  expect_no_writes
  expect_instances 8
}
check "mdev: more instances than there is room for are refused, of the other type as well" exhausted

mdev_held() {
  load_parents
  select_mdevs "{GRID T4-1Q: 1}"
  agent bind --config config.yaml
  expect_exit 0
  first_of "$OWN0"
  held_uuid=$uuid
  hold "$held_uuid"
  agent release --config config.yaml
  expect_exit 3
  expect_told held
  expect_told "pid $holder (vfio-probe)"
  said probe.log event=request && fail "the kernel was asked to take the held instance"
  expect_instances 1 "$OWN0"
  expect_instances 0 "$OWN1"
  count_writes
  agent release --config config.yaml "$PARENT0"
  expect_exit 3
  expect_no_writes
  let_go
  agent release --config config.yaml
  expect_exit 0
  expect_instances 0
}
check "mdev: an instance that a guest has is not removed, and goes when the guest has gone" mdev_held

mdev_unseen_holder() {
  load_parents
  select_mdevs "{GRID T4-1Q: 1}"
  agent bind --config config.yaml
  first_of "$OWN0"
  held_uuid=$uuid
  hold "$held_uuid"
  release_blind
  expect_exit 3
  expect_told held
  said probe.log event=request && fail "the kernel was asked to take the held instance"
  expect_instances 1 "$OWN0"
  let_go
}
check "mdev: release keeps an instance whose holder it cannot see, by the kernel's word" mdev_unseen_holder

others_instance() {
  load_parents
  make_by_hand "$PARENT0" nvidia-1 "$BY_HAND"
  select_mdevs "{GRID T4-1Q: 2}"
  agent bind --config config.yaml
  expect_exit 0
  expect_instances 1 "$OWN0"
  expect_instances 2 "$OWN1"
  plan --config config.yaml
  expect_line "resources[$SMALL_RESOURCE].units[$BY_HAND].state=ready"
  agent release --config config.yaml
  expect_exit 0
  expect_instances 1
  expect_instances 1 "$BY_HAND"
}
check "mdev: an instance that others made counts, is offered, and stays when ours are released" \
  others_instance

killed() {
  load_parents
  select_mdevs "{GRID T4-1Q: 2}"
  start_kubelet
  start_daemon --config "$TMP/config.yaml"
  expect_ask wait "$SMALL_RESOURCE" 4 30
  find_instances
  before=$instances
  first_of "$OWN0"
  hold "$uuid"
  count_writes
  kill -KILL "$daemon"
  start_daemon --config "$TMP/config.yaml"
  until_true 30 said daemon.log event=registered || fail "the daemon does not register again"
  expect_ask wait-total "$SMALL_RESOURCE" 4
  expect_no_writes
  find_instances
  [ "$instances" = "$before" ] || fail "the uuids were$before and are$instances"
  let_go
}
check "mdev: after kill -9 the next daemon has the same instances and writes nothing" killed

made_again() {
  load_parents
  select_mdevs "{GRID T4-1Q: 1}"
  start_kubelet
  start_daemon --config "$TMP/config.yaml" --resync 1s
  expect_ask wait "$SMALL_RESOURCE" 2 30
  first_of "$OWN0"
  echo 1 >"$MDEV/$uuid/remove"
  until_true 20 [ -e "$MDEV/$uuid" ] || fail "the daemon does not make $uuid again"
  expect_ask wait "$SMALL_RESOURCE" 2 30
}
check "mdev: an instance that was removed by hand is made again, with its uuid" made_again
