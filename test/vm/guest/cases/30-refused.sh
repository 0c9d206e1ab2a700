# What must not be bound, and stays exactly as it was.

# expect_refused CODE ADDRESS: `plan` and `bind` refuse with CODE, naming ADDRESS.
expect_refused() {
  plan --config config.yaml
  expect_exit 0
  expect_line "refusals[$1].address=$2"
  expect_unchanged agent bind --config config.yaml
  expect_exit 3
  expect_told "$1"
  expect_told "$2"
}

foreign_member() {
  select_devices "$OPEN_NIC0"
  expect_refused foreign-member "$OPEN_NIC1"
  group_of "$OPEN_NIC0"
  expect_line "groups[$group].verdict=refused" "groups[$group].members[$OPEN_NIC1].role=foreign" \
    "groups[$group].members[$OPEN_PORT0].role=bridge" "groups[$group].members[$OPEN_NIC0].action=none"
}
check "a group with a NIC that nobody selected is refused and left alone" foreign_member

foreign_allowed() {
  write_config <<YAML
resources:
  - name: nvidia.com/chosen
    select: [{address: "$OPEN_NIC0"}]
    allowMembers: [{address: "$OPEN_NIC1"}]
YAML
  agent bind --config config.yaml
  expect_exit 0
  expect_driver "$OPEN_NIC1" vfio-pci
  expect_driver "$OPEN_PORT0" pcieport
  expect_driver "$OPEN_PORT1" pcieport
  expect_usable "$OPEN_NIC0"
  agent release --config config.yaml
  expect_exit 0
  expect_driver "$OPEN_NIC0" e1000e
  expect_driver "$OPEN_NIC1" e1000e
}
check "the same group is bound once the configuration allows the member, its ports stay" foreign_allowed

boot_display() {
  select_devices "$BOOT_DISPLAY"
  expect_refused boot-display "$BOOT_DISPLAY"
}
check "the display that the machine boots with is refused" boot_display

# Virtual functions without a driver: the host's nvme driver finds no resources for them.
enable_vfs() {
  echo 0 >"$PCI/devices/$PHYSICAL_FUNCTION/sriov_drivers_autoprobe"
  echo "$1" >"$PCI/devices/$PHYSICAL_FUNCTION/sriov_numvfs" || fail "no virtual functions"
  virtual=$(readlink "$PCI/devices/$PHYSICAL_FUNCTION/virtfn0")
  virtual=${virtual##*/}
}

physical_function() {
  enable_vfs 2
  select_devices "$PHYSICAL_FUNCTION"
  expect_refused pf-has-vfs "$PHYSICAL_FUNCTION"
}
check "a physical function whose VFs are enabled is refused" physical_function

virtual_function() {
  enable_vfs 2
  select_devices "$virtual"
  expect_refused vf-needs-opt-in "$virtual"
}
check "a virtual function is refused without an opt-in" virtual_function

bad_config() {
  printf 'apiVersion: vfio-agent/v1\nresources:\n  - selekt: []\n' >config.yaml
  expect_unchanged agent bind --config config.yaml
  expect_exit 2
  expect_said err "config.yaml:3"
}
check "an unknown key in the configuration stops bind before the first write" bad_config
