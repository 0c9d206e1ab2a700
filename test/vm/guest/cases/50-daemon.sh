# The daemon on a real kernel, with a kubelet that is a fake.

# serve_h100 ARGUMENT...: up to the point where a pod could be admitted.
serve_h100() {
  start_kubelet
  start_daemon "$@"
  expect_ask wait "$H100_RESOURCE" 1 30
}

daemon_serves() {
  serve_h100
  expect_ask wait-total "$H100_RESOURCE" 1
  expect_ask allocate "$H100_RESOURCE" "$H100"
  group_of "$H100"
  expect_line "envs.$H100_VARIABLE=$H100" devices.size=2
  for node in /dev/vfio/vfio "/dev/vfio/$group"; do
    grep -q "host_path=$node$" lines || fail "Allocate does not give $node"
    grep -q "container_path=$node$" lines || fail "Allocate gives $node by another name"
  done
  node=$(sed -n 's/.*host_path=\(.*[0-9]\)$/\1/p' lines)
  vfio-probe open "$node" "$H100" >probe.log 2>&1 || fail "$node: $(tail -n 1 probe.log)"
  expect_ask prestart "$H100_RESOURCE" "$H100"
}
check "the daemon binds, registers, and Allocate's nodes open for a guest" daemon_serves

daemon_numa() {
  serve_h100
  expect_ask list
  expect_line "resources.$H100_RESOURCE.devices[$H100].health=Healthy" \
    "resources.$H100_RESOURCE.devices[$H100].numa[0]=1"
}
check "the kubelet hears the NUMA node that the kernel tells" daemon_numa

kubelet_restarts() {
  serve_h100
  for _ in 1 2; do
    expect_ask restart
    expect_ask wait "$H100_RESOURCE" 1 30
  done
  expect_ask allocate "$H100_RESOURCE" "$H100"
}
check "after each restart of the kubelet the daemon registers again" kubelet_restarts

sigterm() {
  serve_h100
  stop_in_time
  expect_driver "$H100" vfio-pci
  expect_driver "$H100_AUDIO" vfio-pci
  agent release
  expect_exit 0
  expect_driver "$H100" none
  expect_driver "$H100_AUDIO" snd_hda_intel
}
check "SIGTERM ends the daemon within 2 s and leaves the devices bound" sigterm

next_daemon() {
  serve_h100
  stop_daemon
  expect_unchanged serve_again
}
serve_again() {
  start_daemon
  until_true 30 said daemon.log event=registered || fail "the daemon does not register again"
  expect_ask wait "$H100_RESOURCE" 1 30
}
check "the next daemon finds the devices bound and changes nothing" next_daemon

sighup() {
  select_devices "$LONE_NIC"
  serve_chosen
  select_devices "$LONE_NIC" "$NODE1_NIC"
  kill -HUP "$daemon"
  expect_ask wait nvidia.com/chosen 2 30
  expect_usable "$NODE1_NIC"
}
check "SIGHUP makes the daemon take what the configuration selects now" sighup

sighup_broken() {
  select_devices "$LONE_NIC"
  serve_chosen
  echo "resources: 7" >config.yaml
  kill -HUP "$daemon"
  until_true 20 said daemon.log 'config.yaml:1' || fail "the daemon does not say what is wrong"
  expect_ask allocate nvidia.com/chosen "$LONE_NIC"
  kill -0 "$daemon" || fail "the daemon ended"
}
check "a broken configuration at SIGHUP is reported and the earlier one stays" sighup_broken

# The daemon may heal faster than a shell can ask.
drift() {
  select_devices "$LONE_NIC"
  serve_chosen --resync 1s
  bind_by_hand "$LONE_NIC" e1000e
  expect_ask saw nvidia.com/chosen 0 30
  expect_ask wait nvidia.com/chosen 1 30
  expect_usable "$LONE_NIC"
}
check "a device that somebody bound to its host driver turns unhealthy and is taken again" drift

# A hot unplug and its return, as far as the kernel's software goes.
unplugged() {
  select_devices "$NODE1_NIC"
  serve_chosen --resync 600s
  echo 1 >"$PCI/devices/$NODE1_NIC/remove"
  expect_ask wait nvidia.com/chosen 0 20
  kill -0 "$daemon" || fail "the daemon ended"
  echo 1 >"$PCI/rescan"
  expect_ask wait nvidia.com/chosen 1 30
  expect_usable "$NODE1_NIC"
}
check "a device that leaves the bus turns unhealthy and is taken again on its return" unplugged

uevent() {
  serve_h100 --resync 600s
  started=$(hundredths)
  bind_by_hand "$H100" none
  until_true 20 driver_is "$H100" vfio-pci || fail "the kernel's event went unheard"
  echo "# taken again after $(($(hundredths) - started)) hundredths of a second"
}
check "the kernel's event alone wakes the daemon" uevent

# The second one has the same configuration and the same state directory, as in a rolling update.
second_daemon() {
  select_devices "$LONE_NIC"
  serve_chosen
  first=$daemon
  count_writes
  daemon_log=second.log
  start_daemon --config config.yaml
  until_true 20 said second.log "event=agent_waiting.*pid $first" ||
    fail "the second daemon does not wait for the first"
  expect_ask allocate nvidia.com/chosen "$LONE_NIC"
  said second.log event=agent_started && fail "two daemons are at work"
  kill "$first"
  until_true 20 said second.log event=registered || fail "the second daemon does not take over"
  expect_ask allocate nvidia.com/chosen "$LONE_NIC"
  expect_no_writes
}
check "a second daemon waits, takes over when the first has ended, and writes nothing" second_daemon
