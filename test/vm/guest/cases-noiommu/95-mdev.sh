# Mediated devices where no IOMMU is on: guest/mdev.sh.

have_parents || return

lone_parents() {
  load_parents
  select_mdevs "{GRID T4-1Q: 2}"
  for parent in "$PARENT0" "$PARENT1"; do
    [ ! -e "$PCI/devices/$parent/iommu_group" ] || fail "$parent has a group"
  done
  agent bind --config config.yaml
  expect_exit 0
  expect_instances 2 "$OWN0"
  expect_instances 2 "$OWN1"
  expect_parents
  for uuid in $instances; do expect_usable "$uuid"; done
  agent release --config config.yaml "$PARENT0"
  expect_exit 0
  expect_instances 0 "$OWN0"
  expect_instances 2 "$OWN1"
}
check "mdev: without an IOMMU instances are made and removed, and open for a guest" lone_parents
