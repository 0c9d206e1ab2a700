# An unbind of the agent's own that the kernel does not return from. snd_hda_intel's waits until
# nobody has the card's nodes open, as NVIDIA's driver waits for its users, and no signal ends it.
# The guard tells of the process; an operator who overrules it gets to see what it was for.

# hold_sound: a process has the card's sound open, until end_sound.
hold_sound() {
  until_true 20 has_sound || fail "$CARD_AUDIO plays no sound"
  open_node "$sound"
  listener=$started_pid
}
end_sound() {
  kill "$listener"
  wait "$listener"
}

# start_blocked ARGUMENT...: a daemon whose write to the sound function's `unbind` does not return.
# The driver link goes before the driver is asked.
start_blocked() {
  select_devices "$CARD_NIC"
  cat >>config.yaml <<YAML
  - name: nvidia.com/other
    select: [{address: "$LONE_NIC"}]
YAML
  guard_overrules "$CARD_AUDIO"
  hold_sound
  start_kubelet
  start_daemon --config config.yaml --resync 1s "$@"
  expect_ask wait nvidia.com/other 1 30
  until_true 20 driver_is "$CARD_AUDIO" none || fail "the sound function was not unbound"
}

expect_stuck() {
  until_true 20 said daemon.log "bind_stuck.*code=unbind-timeout" || fail "no unbind-timeout"
  until_true 20 said daemon.log "bind_stuck.*code=unbind-stuck" || fail "no unbind-stuck"
}

# Everything back to where it came from, by the journal's word.
expect_given_back() {
  agent release --config config.yaml
  expect_exit 0
  expect_driver "$CARD_NIC" e1000e
  expect_driver "$CARD_AUDIO" snd_hda_intel
  expect_no_override "$CARD_NIC"
  expect_no_override "$CARD_AUDIO"
}

stuck_unbind() {
  start_blocked --unbind-timeout 2s
  expect_stuck
  grep bind_stuck daemon.log
  for text in "stack=.*snd_card_free" "device=$CARD_AUDIO" "try=.*snd_hda_intel/unbind" remedy=; do
    grep code=unbind-stuck daemon.log | grep -q -- "$text" || fail "the log does not say '$text'"
  done
  expect_ask allocate nvidia.com/other "$LONE_NIC"
  expect_ask wait nvidia.com/chosen 0
  agent bind --config config.yaml "$CARD_NIC"
  expect_exit 3
  expect_told "still at work"
  end_sound
  until_true 20 said daemon.log event=bind_returned || fail "the daemon does not see the end of it"
  expect_ask wait nvidia.com/chosen 1 30
  expect_usable "$CARD_NIC"
  expect_usable "$CARD_AUDIO"
  stop_daemon
  expect_given_back
}
check "an unbind that does not return is told with the kernel's stack, and finished when it does" \
  stuck_unbind

stuck_at_restart() {
  start_blocked --unbind-timeout 2s
  expect_stuck
  stop_in_time
  count_writes
  start_daemon --config config.yaml
  # The other text is of a write that is late by now.
  until_true 20 said daemon.log "still at work\|before this one" ||
    fail "the next daemon does not see the write"
  until_true 30 said daemon.log "event=registered.*other" || fail "the other device is not served"
  expect_ask allocate nvidia.com/other "$LONE_NIC"
  expect_no_writes
  end_sound
  expect_ask wait nvidia.com/chosen 1 30
  stop_daemon
  expect_given_back
}
check "a daemon that follows one with a stuck write waits for that, then finishes the group" \
  stuck_at_restart

# Daemon and child are killed; the child ends when its write does, and makes no other.
killed_midway() {
  start_blocked --unbind-timeout 60s
  killall -KILL vfio-agent
  end_sound
  until_true 20 no_agent || fail "the child goes on"
  expect_driver "$CARD_AUDIO" none
  grep -q '"driver": *"snd_hda_intel"' "$STATE/devices/$CARD_AUDIO.json" ||
    fail "the journal does not know the sound function's driver"
  start_daemon --config config.yaml
  expect_ask wait nvidia.com/chosen 1 30
  expect_usable "$CARD_NIC"
  expect_usable "$CARD_AUDIO"
  stop_daemon
  expect_given_back
}
check "a bind that was killed in the middle is finished by the next daemon, and undone by release" \
  killed_midway

# The configuration has changed its mind meanwhile.
killed_and_unwanted() {
  start_blocked --unbind-timeout 60s
  killall -KILL vfio-agent
  end_sound
  until_true 20 no_agent || fail "the child goes on"
  select_devices "$LONE_NIC"
  start_daemon --config config.yaml
  until_true 20 driver_is "$CARD_AUDIO" snd_hda_intel || fail "the sound function is not back"
  until_true 20 driver_is "$CARD_NIC" e1000e || fail "the NIC is not back"
  until_true 20 test ! -e "$STATE/devices/$CARD_NIC.json" || fail "the journal keeps its record"
  expect_no_override "$CARD_NIC"
  expect_no_override "$CARD_AUDIO"
}
check "a bind that was killed in the middle is put back where nobody wants it any more" \
  killed_and_unwanted
