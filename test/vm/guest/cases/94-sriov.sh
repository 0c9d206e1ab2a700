# Virtual functions that the agent makes, gives away and removes again.

# select_vfs SRIOV: the VFs of the NVMe controller are nvidia.com/chosen.
select_vfs() {
  write_config <<YAML
resources:
  - name: nvidia.com/chosen
    select: [{address: "$PHYSICAL_FUNCTION"}]
    sriov: $1
YAML
}

# vf NUMBER: its address in `virtual`.
vf() {
  virtual=$(readlink "$PCI/devices/$PHYSICAL_FUNCTION/virtfn$1") || fail "there is no virtfn$1"
  virtual=${virtual##*/}
}

# The physical function as it was: its driver, no VFs, host drivers may take new ones.
expect_no_vfs() {
  expect_driver "$PHYSICAL_FUNCTION" nvme
  read -r count <"$PCI/devices/$PHYSICAL_FUNCTION/sriov_numvfs"
  [ "$count" = 0 ] || fail "there are $count VFs"
  read -r probing <"$PCI/devices/$PHYSICAL_FUNCTION/sriov_drivers_autoprobe"
  [ "$probing" = 1 ] || fail "sriov_drivers_autoprobe is $probing"
}

vfs_by_hand() {
  echo 1 >"$PCI/devices/$PHYSICAL_FUNCTION/sriov_drivers_autoprobe"
  select_vfs "{vfs: 2}"
  agent bind --config config.yaml
  expect_exit 0
  expect_driver "$PHYSICAL_FUNCTION" nvme
  for number in 0 1; do
    vf "$number"
    expect_driver "$virtual" vfio-pci
    expect_usable "$virtual"
  done
  agent release --config config.yaml
  expect_exit 0
  expect_no_vfs
}
check "bind makes VFs and binds each of them for a guest, release removes them" vfs_by_hand

vfs_served() {
  echo 1 >"$PCI/devices/$PHYSICAL_FUNCTION/sriov_drivers_autoprobe"
  select_vfs "{vfs: 2}"
  start_kubelet
  start_daemon --config "$TMP/config.yaml"
  expect_ask wait nvidia.com/chosen 2 30
  vf 1
  expect_ask allocate nvidia.com/chosen "$virtual"
  group_of "$virtual"
  expect_line "envs.PCI_RESOURCE_NVIDIA_COM_CHOSEN=$virtual"
  grep -q "host_path=/dev/vfio/$group$" lines || fail "Allocate does not give /dev/vfio/$group"
  expect_usable "$virtual"
}
check "the daemon makes VFs, offers them, and Allocate's node of one opens for a guest" vfs_served

vfs_on_exit() {
  echo 1 >"$PCI/devices/$PHYSICAL_FUNCTION/sriov_drivers_autoprobe"
  select_vfs "{vfs: 2}"
  start_kubelet
  start_daemon --config "$TMP/config.yaml" --on-exit release --unbind-timeout 30s
  expect_ask wait nvidia.com/chosen 2 30
  stop_daemon
  expect_exit 0
  expect_no_vfs
}
check "with onExit: release the VFs that the daemon has made go with it" vfs_on_exit

vf_held() {
  echo 1 >"$PCI/devices/$PHYSICAL_FUNCTION/sriov_drivers_autoprobe"
  select_vfs "{vfs: 2}"
  agent bind --config config.yaml
  expect_exit 0
  vf 0
  hold "$virtual"
  expect_unchanged agent release --config config.yaml
  expect_exit 3
  expect_told held
  let_go
  agent release --config config.yaml
  expect_exit 0
  expect_no_vfs
}
check "VFs of which a guest has one are not removed" vf_held

mounted_pf() {
  echo 1 >"$PCI/devices/$PHYSICAL_FUNCTION/sriov_drivers_autoprobe"
  select_vfs "{vfs: 2}"
  find_disk
  mkdir -p /run/boot
  later umount /run/boot
  mke2fs "/dev/$disk" >mke2fs.log 2>&1 && mount -t ext4 "/dev/$disk" /run/boot ||
    fail "/dev/$disk cannot be mounted"
  expect_unchanged agent bind --config config.yaml
  expect_exit 3
  expect_told in-use-storage
  expect_no_vfs
}
check "no VFs are made of a controller whose disk the host has mounted" mounted_pf

too_many_vfs() {
  echo 1 >"$PCI/devices/$PHYSICAL_FUNCTION/sriov_drivers_autoprobe"
  select_vfs "{vfs: 5}"
  expect_unchanged agent bind --config config.yaml
  expect_exit 3
  expect_told "can have 4 virtual functions"
  expect_no_vfs
}
check "more VFs than the device can have are refused before any write" too_many_vfs
