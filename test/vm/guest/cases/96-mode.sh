# A node whose mode a label of its Node says, with real drivers that devices are taken from and go
# back to.

have_api || return

# container: what `start_daemon` starts from now on can be killed whole, by kill_container.
container() {
  mkdir -p /run/cgroup
  mount -t cgroup2 none /run/cgroup || fail "the kernel has no cgroup v2"
  later umount -l /run/cgroup
  mkdir /run/cgroup/container
  later rmdir /run/cgroup/container
  inside=/guest/in-cgroup
}
kill_container() { echo 1 >/run/cgroup/container/cgroup.kill; }

# expect_home ADDRESS=DRIVER...: as they were before the agent came, with nothing left of it.
expect_home() {
  for entry; do
    until_true 120 driver_is "${entry%%=*}" "${entry#*=}" ||
      expect_driver "${entry%%=*}" "${entry#*=}"
  done
  expect_mode container ready
  for entry; do
    expect_no_override "${entry%%=*}"
    [ ! -e "$STATE/devices/${entry%%=*}.json" ] || fail "the journal keeps ${entry%%=*}"
  done
}
expect_card_home() { expect_home "$CARD_NIC=e1000e" "$CARD_AUDIO=snd_hda_intel"; }

# True once the card is refused for the mode. Ten seconds later it is on no list.
gone_by_mode() {
  ask allocate nvidia.com/chosen "$CARD_NIC"
  grep -qxF ok=true lines && fail "the card is given away in mode container"
  case $answer in *"by the configuration or the mode"*) ;; *) return 1 ;; esac
}

there_and_back() {
  select_by_label container "$CARD_NIC"
  start_api vm-passthrough
  serve_chosen
  expect_usable "$CARD_NIC"
  expect_condition True Serving
  label_node container
  expect_ask wait nvidia.com/chosen 0 60
  until_true 60 gone_by_mode || fail "the card is refused without a word of the mode: $answer"
  expect_card_home
  expect_condition False ModeContainer
  expect_ask wait nvidia.com/chosen 0
  label_node vm-passthrough
  expect_ask wait nvidia.com/chosen 1 30
  expect_usable "$CARD_NIC"
  expect_mode vm-passthrough ready
}
check "mode: a card goes to vfio-pci, back to its two drivers and to vfio-pci by the Node's label" \
  there_and_back

# The successor of a daemon that was killed meanwhile waits as well.
expect_waiting() {
  expect_ask wait nvidia.com/chosen 0 30
  until_true 30 said daemon.log "waits for pid $holder (vfio-probe), which has $LONE_NIC open" ||
    fail "the daemon does not say who has $LONE_NIC"
}

mode_held() {
  select_by_label container "$LONE_NIC" "$CARD_NIC"
  container
  start_api vm-passthrough
  start_kubelet
  start_daemon --config config.yaml
  expect_ask wait nvidia.com/chosen 2 30
  hold "$LONE_NIC"
  count_writes
  label_node container
  expect_waiting
  kill_container
  start_daemon --config config.yaml
  expect_waiting
  until_true 30 said daemon.log event=mode_blocked || fail "the switch does not count as blocked"
  expect_condition False ModeBlocked
  grep -F "$condition.message=" lines | grep -qF "pid $holder (vfio-probe)" ||
    fail "the condition does not name the holder"
  expect_mode vm-passthrough blocked
  expect_no_writes
  expect_not_asked
  expect_driver "$CARD_NIC" vfio-pci
  let_go
  expect_home "$LONE_NIC=e1000e" "$CARD_NIC=e1000e" "$CARD_AUDIO=snd_hda_intel"
}
check "mode: a switch waits for the process that has a device, names it, also after kill -9" mode_held

# leaves_vfio ADDRESS...: returns as soon as one of them has left; a process in between is too slow.
leaves_vfio() {
  # shellcheck disable=SC2016
  timeout 40 sh -c 'cd "$0" && while [ -e "$1" ] && [ -e "$2" ]; do :; done' \
    "$PCI/drivers/vfio-pci" "$@" || fail "none of $* leaves vfio-pci"
}

# False where all was back by the time of the kill, as may be on a busy machine.
kill_between() {
  label_node container
  leaves_vfio "$CARD_NIC" "$CARD_AUDIO"
  kill_container
  until_true 20 no_agent || fail "the agent goes on"
  driver_of "$CARD_NIC"
  echo "# killed while $CARD_NIC was with $driver"
  [ -e "$STATE/devices/$CARD_NIC.json" ] || [ -e "$STATE/devices/$CARD_AUDIO.json" ]
}

killed_giving_back() {
  select_by_label container "$CARD_NIC"
  container
  start_api vm-passthrough
  serve_chosen
  tries=1
  until kill_between; do
    tries=$((tries + 1))
    [ "$tries" -le 3 ] || fail "the kill came too late three times"
    label_node vm-passthrough
    start_daemon --config config.yaml
    expect_ask wait nvidia.com/chosen 1 30
  done
  start_daemon --config config.yaml
  expect_card_home
}
check "mode: kill -9 while a card is given back: the next daemon gives it back to its two drivers" \
  killed_giving_back

# The label says something else by the time the write returns.
killed_taking() {
  select_by_label container "$CARD_NIC"
  guard_overrules "$CARD_AUDIO"
  container
  hold_sound
  start_api vm-passthrough
  start_kubelet
  start_daemon --config config.yaml
  until_true 30 driver_is "$CARD_AUDIO" none || fail "the sound function was not unbound"
  kill_container
  label_node container
  end_sound
  until_true 20 no_agent || fail "the child goes on"
  expect_driver "$CARD_AUDIO" none
  start_daemon --config config.yaml
  expect_card_home
}
check "mode: kill -9 while a card is taken, and another label: the next daemon gives it back" \
  killed_taking

api_away() {
  select_by_label container "$LONE_NIC"
  container
  start_api vm-passthrough
  serve_chosen
  expect_mode vm-passthrough ready
  count_writes
  expect_api down
  label_node container
  kill_container
  start_daemon --config config.yaml
  until_true 30 said daemon.log event=registered || fail "the daemon does not register again"
  expect_ask wait nvidia.com/chosen 1 30
  said daemon.log "$MODE_LABEL has not been read" || fail "the daemon does not say what it waits for"
  expect_usable "$LONE_NIC"
  expect_no_writes
  expect_api up
  expect_home "$LONE_NIC=e1000e"
}
check "mode: while the API server is away the last mode stays, also for the next daemon" api_away

# The node served guests last, and its users have begun to use the device for themselves.
label_first() {
  select_by_label vm-passthrough "$LONE_NIC"
  mkdir -p "$STATE"
  echo '{"schema": "vfio-agent/mode/v1", "mode": "vm-passthrough"}' >"$STATE/mode.json"
  start_api container
  expect_api down
  count_writes
  start_daemon --config config.yaml
  until_true 30 said daemon.log "$MODE_LABEL has not been read" || fail "the daemon does not wait"
  expect_api up
  expect_mode container ready
  start_kubelet
  expect_condition False ModeContainer
  kill -HUP "$daemon"
  until_true 20 said daemon.log event=config_reloaded || fail "the daemon does not reload"
  expect_no_writes
  expect_driver "$LONE_NIC" e1000e
  expect_ask list
  ! grep -q nvidia.com/chosen lines || fail "the device is offered"
  label_node vm-passthrough
  expect_ask wait nvidia.com/chosen 1 30
  total writes
  [ "$total" -gt 0 ] || fail "the kernel counts no write"
}
check "mode: a Node that is labelled container before its kubelet starts: nothing is bound" label_first
