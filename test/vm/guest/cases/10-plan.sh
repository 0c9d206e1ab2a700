# What the agent reads on a real kernel, and that reading changes nothing.

plan_of_untouched() {
  plan
  expect_exit 0
  group_of "$H100"
  expect_line schema=vfio-agent/plan/v1 iommu.state=on iommu.kind=intel iommu.acs_override=false \
    "groups[$group].verdict=bind" "groups[$group].resource=$H100_RESOURCE" \
    "groups[$group].members.size=2" "refusals.size=0"
  member="groups[$group].members[$H100]"
  expect_line "$member.role=primary" "$member.class=030200" "$member.driver=null" \
    "$member.action=bind" "$member.to=vfio-pci"
  member="groups[$group].members[$H100_AUDIO]"
  expect_line "$member.role=companion" "$member.driver=snd_hda_intel" "$member.action=bind"
  unit="resources[$H100_RESOURCE].units[$H100]"
  expect_line "$unit.group=$group" "$unit.numa_node=1" "$unit.state=to-bind"
}
check "the plan takes the H100 with its audio function and nothing else" plan_of_untouched

read_only() {
  for command in plan "plan --all" list "list devices" "list groups" "list resources" \
    "explain $H100" "explain $H100_RESOURCE" "config check"; do
    # shellcheck disable=SC2086
    agent $command
    [ "$code" = 0 ] || fail "$command: exit code $code: $(head -n 1 err)"
    [ -s out ] || fail "$command says nothing"
  done
}
reading_commands() { expect_unchanged read_only; }
check "plan, list and explain succeed and change nothing" reading_commands

explain_merge() {
  group_of "$OPEN_NIC0"
  agent explain "group:$group"
  expect_exit 0
  expect_said out "$OPEN_NIC0"
  expect_said out "$OPEN_NIC1"
  grep -e "$OPEN_PORT0" -e "$OPEN_PORT1" out | grep -q ACS ||
    fail "no line names a port and its missing ACS"
}
check "explain names the ports whose missing ACS merges a group" explain_merge

# as_nobody ARGUMENT...
as_nobody() {
  timeout 60 su -s /bin/sh nobody -c "vfio-agent $*" >out 2>err
  code=$?
}

without_privileges() {
  as_nobody plan -o json
  expect_exit 0
  json-lines <out >lines
  group_of "$H100"
  expect_line iommu.state=on "groups[$group].verdict=bind" iommu.acs_override=false
  as_nobody explain "$H100"
  expect_exit 0
  grep -qi unknown out || fail "explain does not say that ACS is unknown"
}
check "without privileges the plan is the same and ACS is unknown" without_privileges

bind_without_privileges() {
  load_vfio
  expect_unchanged as_nobody bind
  [ "$code" != 0 ] || fail "bind by nobody succeeded"
  expect_told permission-denied
}
check "bind without privileges changes nothing and says permission-denied" bind_without_privileges
