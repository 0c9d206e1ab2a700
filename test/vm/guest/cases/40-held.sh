# Devices that a guest has open. The kernel does not take them away: an unbind waits.

held() {
  agent bind
  expect_exit 0
  hold "$H100"
  expect_unchanged agent release
  expect_exit 3
  expect_told held
  expect_driver "$H100" vfio-pci
  said probe.log event=request && fail "the kernel was asked to take the held device"
  let_go
  agent release
  expect_exit 0
  expect_driver "$H100_AUDIO" snd_hda_intel
}
check "release refuses a held group and works when the holder is gone" held

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
  said probe.log event=request && fail "the kernel was asked to take the held device"
  expect_driver "$LONE_NIC" vfio-pci
  let_go
}
check "release refuses a group whose holder it cannot see, by the kernel's word" unseen_holder

# Without /dev/vfio nothing tells of the holder, so the write is made, and waits.
blind_deadline() {
  select_devices "$LONE_NIC"
  printf 'bind: {unbindTimeout: 2s}\n' >>config.yaml
  agent bind --config config.yaml
  expect_exit 0
  hold "$LONE_NIC"
  release_blind /dev/vfio
  expect_exit 1
  cat out err | grep -q unbind-timeout || fail "it does not say unbind-timeout"
  said probe.log event=request || fail "the kernel never asked the holder"
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
  let_go
  until_true 10 driver_is "$LONE_NIC" none || fail "the unbind did not end with the holder"
}
check "plan, list and explain answer while an unbind of the device waits" blocked_unbind

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
  expect_ask allocate "$H100_RESOURCE" "$H100"
  bind_by_hand "$H100" none
  until_true 20 driver_is "$H100" vfio-pci || fail "the daemon no longer heals other devices"
  let_go
  until_true 20 driver_is "$LONE_NIC" vfio-pci || fail "the NIC was not taken again"
  stop_daemon
  expect_exit 0
}
check "a waiting unbind of one device does not stop the daemon from serving others" \
  daemon_beside_blocked_unbind
