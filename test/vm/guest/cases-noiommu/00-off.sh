# A node whose kernel was started with intel_iommu=off.

no_groups() {
  set -- /sys/kernel/iommu_groups/*
  [ ! -e "$1" ] || fail "there is a group: $1"
}
check "without an IOMMU the kernel makes no groups" no_groups

plan_off() {
  plan
  expect_exit 0
  expect_line iommu.state=off "refusals[iommu-off].address=$H100"
  expect_line "resources[$H100_RESOURCE].units[$H100].state=refused"
}
check "without an IOMMU the plan refuses with iommu-off" plan_off

bind_off() {
  expect_unchanged agent bind
  expect_exit 3
  expect_told iommu-off
  agent release
  expect_exit 0
}
check "without an IOMMU bind is refused and changes nothing" bind_off

daemon_off() {
  start_kubelet
  start_daemon --resync 1s
  until_true 30 said daemon.log iommu-off || fail "the daemon does not say iommu-off"
  kill -0 "$daemon" || fail "the daemon ended"
  expect_unchanged stop_daemon
  expect_exit 0
}
check "without an IOMMU the daemon says so, keeps running and offers nothing" daemon_off
