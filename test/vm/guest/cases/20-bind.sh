# The way to vfio-pci and back.

bind_h100() {
  [ -e "$PCI/drivers/vfio-pci" ] && fail "vfio-pci is loaded before the agent asks for it"
  agent bind
  expect_exit 0
  expect_driver "$H100" vfio-pci
  expect_driver "$H100_AUDIO" vfio-pci
  expect_usable "$H100"
  expect_said probe.log "id=10de:2330"
  expect_usable "$H100_AUDIO"
}
check "bind loads vfio-pci and makes the whole group usable for a guest" bind_h100

plan_by_hand() {
  load_vfio
  agent plan
  expect_exit 0
  sh -e out >by-hand.log 2>&1 || fail "the plan's commands fail: $(tail -n 1 by-hand.log)"
  expect_usable "$H100"
  expect_unchanged agent bind
  expect_exit 0
}
check "the printed plan, typed by hand, does what bind would do" plan_by_hand

others_untouched() {
  agent bind
  expect_driver "$H100" vfio-pci
  for entry in $HOST_DRIVERS; do
    case $entry in "$H100"* | "$H100_AUDIO"*) continue ;; esac
    expect_driver "${entry%%=*}" "${entry#*=}"
    expect_no_override "${entry%%=*}"
  done
}
check "bind touches no device outside the group" others_untouched

bind_twice() {
  agent bind
  expect_exit 0
  expect_unchanged agent bind
  expect_exit 0
  plan
  group_of "$H100"
  expect_line "groups[$group].verdict=bound" "actions.size=0" \
    "resources[$H100_RESOURCE].units[$H100].state=ready"
}
check "a second bind has nothing to do" bind_twice

release_h100() {
  agent bind
  expect_driver "$H100" vfio-pci
  expect_driver "$H100_AUDIO" vfio-pci
  agent release
  expect_exit 0
  expect_driver "$H100" none
  expect_driver "$H100_AUDIO" snd_hda_intel
  expect_no_override "$H100"
  expect_no_override "$H100_AUDIO"
  group_of "$H100"
  [ ! -e "/dev/vfio/$group" ] || fail "/dev/vfio/$group is still there"
}
check "release gives the audio function back and leaves the H100 without a driver" release_h100

release_elsewhere() {
  agent bind
  expect_driver "$H100_AUDIO" vfio-pci
  rm -rf "$STATE"
  agent release "$H100"
  expect_exit 0
  expect_driver "$H100" none
  expect_driver "$H100_AUDIO" snd_hda_intel
}
check "release without a record lets the kernel choose the drivers" release_elsewhere

lone_nic() {
  select_devices "$LONE_NIC"
  agent bind --config config.yaml
  expect_exit 0
  expect_usable "$LONE_NIC"
  expect_driver "$H100_AUDIO" snd_hda_intel
  agent release --config config.yaml
  expect_exit 0
  expect_driver "$LONE_NIC" e1000e
  expect_no_override "$LONE_NIC"
}
check "a NIC that the configuration selects goes to vfio-pci and back to e1000e" lone_nic

two_functions() {
  select_devices "$CARD_NIC"
  agent bind --config config.yaml
  expect_exit 0
  expect_usable "$CARD_NIC"
  expect_usable "$CARD_AUDIO"
  agent release --config config.yaml
  expect_exit 0
  expect_driver "$CARD_NIC" e1000e
  expect_driver "$CARD_AUDIO" snd_hda_intel
}
check "a card's functions go together and come back to two different drivers" two_functions

half_bound() {
  load_vfio
  bind_by_hand "$CARD_NIC" vfio-pci
  select_devices "$CARD_NIC"
  agent bind --config config.yaml
  expect_exit 0
  expect_usable "$CARD_NIC"
  expect_driver "$CARD_AUDIO" vfio-pci
}
check "a group that somebody bound by half is completed" half_bound

several_groups() {
  select_devices "$LONE_NIC" "$CARD_NIC" "$NODE1_NIC"
  agent bind --config config.yaml
  expect_exit 0
  for address in "$LONE_NIC" "$CARD_NIC" "$NODE1_NIC"; do expect_usable "$address"; done
  agent release --config config.yaml "$NODE1_NIC"
  expect_exit 0
  expect_driver "$NODE1_NIC" e1000e
  expect_driver "$LONE_NIC" vfio-pci
}
check "several groups are bound at once and released one at a time" several_groups

conventional_bus() {
  driver_of "$BRIDGE"
  before=$driver
  select_devices "$CONVENTIONAL_NIC"
  agent bind --config config.yaml
  expect_exit 0
  expect_driver "$BRIDGE" "$before"
  expect_driver "$CONVENTIONAL_EDU" none
  expect_no_override "$CONVENTIONAL_EDU"
  expect_usable "$CONVENTIONAL_NIC"
  agent release --config config.yaml
  expect_driver "$CONVENTIONAL_NIC" e1000
}
check "behind a conventional bridge a neighbour without a driver hinders nothing" conventional_bus
