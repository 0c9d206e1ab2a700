# Devices that a guest has open. The kernel does not take them away: an unbind waits.

expect_not_asked() {
  said probe.log event=request && fail "the kernel was asked to take the held device"
  return 0
}

# What counts no write where one is made would prove nothing where none is made.
held() {
  count_writes
  agent bind
  expect_exit 0
  total writes
  [ "$total" -gt 0 ] || fail "the kernel counts no write of bind"
  count_writes
  expect_no_writes
  hold "$H100"
  count_writes
  expect_unchanged agent release
  expect_exit 3
  expect_told held
  expect_told "pid $holder (vfio-probe)"
  expect_no_writes
  expect_not_asked
  let_go
  agent release
  expect_exit 0
  expect_driver "$H100_AUDIO" snd_hda_intel
}
check "release names the holder of a group, writes nothing, and works when the holder is gone" held

# Runs `release` with the holder's directory in /proc covered, as it would be in another process
# namespace, and with what else is named covered as well.
release_blind() {
  cover="mount -t tmpfs none /proc/$holder"
  for directory; do cover="$cover && mount -t tmpfs none $directory"; done
  timeout 30 unshare -m sh -c "$cover && exec vfio-agent release --config $TMP/config.yaml" \
    >out 2>err
  code=$?
}

unseen_holder() {
  select_devices "$LONE_NIC"
  agent bind --config config.yaml
  expect_exit 0
  hold "$LONE_NIC"
  release_blind
  expect_exit 3
  expect_told held
  expect_not_asked
  expect_driver "$LONE_NIC" vfio-pci
  let_go
}
check "release refuses a group whose holder it cannot see, by the kernel's word" unseen_holder

# Without /dev/vfio nothing tells of the holder, so the write is made, and waits.
blind_deadline() {
  select_devices "$LONE_NIC"
  agent bind --config config.yaml
  expect_exit 0
  # For what follows alone: that bind has loaded modules as well.
  printf 'bind: {unbindTimeout: 2s}\n' >>config.yaml
  hold "$LONE_NIC"
  release_blind /dev/vfio
  expect_exit 1
  cat out err | grep -q unbind-timeout || fail "it does not say unbind-timeout"
  grep code=unbind-timeout err | grep -q "stack=.*vfio_unregister_group_dev" ||
    fail "the log does not say where the kernel waits"
  until_true 10 said probe.log event=request || fail "the kernel never asked the holder"
  let_go
  until_true 10 driver_is "$LONE_NIC" none || until_true 10 driver_is "$LONE_NIC" e1000e ||
    fail "the unbind did not end with the holder"
}
check "an unbind that waits for a holder nothing tells of ends release by its deadline" \
  blind_deadline

# While an unbind waits, the kernel lets nobody read the device's driver_override either.
blocked_unbind() {
  select_devices "$LONE_NIC"
  agent bind --config config.yaml
  expect_exit 0
  hold "$LONE_NIC"
  echo "$LONE_NIC" >"$PCI/drivers/vfio-pci/unbind" &
  until_true 10 said probe.log event=request || fail "the unbind does not wait"
  for command in plan "list groups" "explain $LONE_NIC"; do
    # shellcheck disable=SC2086
    timeout 20 vfio-agent $command --config config.yaml >out 2>err ||
      fail "$command hangs or fails: $(head -n 1 err)"
  done
  started=$(hundredths)
  agent bind --config config.yaml
  echo "# bind answered after $(($(hundredths) - started)) hundredths of a second"
  [ $(($(hundredths) - started)) -le 2000 ] || fail "bind took longer than 20 s"
  expect_exit 3
  expect_told unbind-stuck
  agent release --config config.yaml
  expect_exit 3
  expect_told held
  let_go
  until_true 10 driver_is "$LONE_NIC" none || fail "the unbind did not end with the holder"
}
check "plan, list, explain, bind and release answer while an unbind of the device waits" \
  blocked_unbind

daemon_beside_blocked_unbind() {
  write_config <<YAML
resources:
  - name: nvidia.com/nic
    select: [{address: "$LONE_NIC"}]
  - select: [{vendor: "10de", class: ["0302"]}]
YAML
  start_kubelet
  start_daemon --config config.yaml --resync 1s
  expect_ask wait nvidia.com/nic 1 30
  expect_ask wait "$H100_RESOURCE" 1 30
  hold "$LONE_NIC"
  echo "$LONE_NIC" >"$PCI/drivers/vfio-pci/unbind" &
  until_true 10 said probe.log event=request || fail "the unbind does not wait"
  bind_by_hand "$H100" none
  until_true 60 driver_is "$H100" vfio-pci || fail "the daemon no longer heals other devices"
  expect_ask wait "$H100_RESOURCE" 1 30
  expect_ask allocate "$H100_RESOURCE" "$H100"
  let_go
  until_true 20 driver_is "$LONE_NIC" vfio-pci || fail "the NIC was not taken again"
  stop_daemon
  expect_exit 0
}
check "a waiting unbind of one device does not stop the daemon from serving others" \
  daemon_beside_blocked_unbind

sigterm_beside_blocked_unbind() {
  select_devices "$LONE_NIC"
  serve_chosen --resync 1s
  hold "$LONE_NIC"
  echo "$LONE_NIC" >"$PCI/drivers/vfio-pci/unbind" &
  until_true 10 said probe.log event=request || fail "the unbind does not wait"
  expect_ask wait nvidia.com/chosen 0 20
  until_true 20 said daemon.log code=.*unbind-stuck || fail "the daemon does not say unbind-stuck"
  stop_in_time
  let_go
}
check "SIGTERM ends the daemon within 2 s while an unbind of its device waits" \
  sigterm_beside_blocked_unbind

on_exit_held() {
  select_devices "$LONE_NIC" "$NODE1_NIC"
  start_kubelet
  start_daemon --config config.yaml --on-exit release
  expect_ask wait nvidia.com/chosen 2 30
  hold "$LONE_NIC"
  stop_daemon
  expect_driver "$LONE_NIC" vfio-pci
  expect_not_asked
  let_go
  expect_driver "$NODE1_NIC" e1000e
  expect_no_override "$NODE1_NIC"
}
check "with onExit: release SIGTERM gives back what nobody holds and leaves the rest" on_exit_held

# The daemon's end, its death, a reload, and both commands beside it.
zero_writes() {
  select_devices "$LONE_NIC"
  serve_chosen
  expect_ask pod default guest compute nvidia.com/chosen "$LONE_NIC"
  hold "$LONE_NIC"
  count_writes
  stop_daemon
  start_daemon --config config.yaml
  until_true 30 said daemon.log event=registered || fail "the daemon does not register again"
  kill -HUP "$daemon"
  until_true 20 said daemon.log event=config_reloaded || fail "the daemon does not reload"
  kill -KILL "$daemon"
  start_daemon --config config.yaml
  until_true 30 said daemon.log event=registered || fail "the daemon does not register again"
  expect_ask allocate nvidia.com/chosen "$LONE_NIC"
  agent bind --config config.yaml
  expect_exit 0
  agent release --config config.yaml
  expect_exit 3
  expect_no_writes
  expect_not_asked
  let_go
}
check "stop, kill, start and reload of the daemon write nothing while a guest holds the device" \
  zero_writes

# The kernel lets go of a function that the guest has not opened, although the group is the guest's,
# and gives it to no host driver.
held_drift() {
  start_kubelet
  start_daemon --resync 1s
  expect_ask wait "$H100_RESOURCE" 1 30
  hold "$H100"
  count_writes
  echo "$H100_AUDIO" >"$PCI/drivers/vfio-pci/unbind"
  expect_ask wait "$H100_RESOURCE" 0 20
  until_true 20 said daemon.log "group_refused.*code=held.*pid $holder (vfio-probe)" ||
    fail "the daemon does not say who holds the group"
  expect_ask wait-total "$H100_RESOURCE" 1
  echo >"$PCI/devices/$H100_AUDIO/driver_override"
  if echo "$H100_AUDIO" >"$PCI/drivers_probe"; then fail "the host's driver took the function"; fi
  expect_driver "$H100_AUDIO" none
  expect_no_writes
  expect_not_asked
  let_go
  expect_ask wait "$H100_RESOURCE" 1 30
  expect_usable "$H100"
  expect_usable "$H100_AUDIO"
}
check "a companion lost while a guest holds the group is taken again only after the guest" held_drift
