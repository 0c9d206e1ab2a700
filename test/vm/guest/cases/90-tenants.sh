# One group, one owner: the two NICs of one group are two units, and no two pods get one of each.

one_owner() {
  select_devices "$OPEN_NIC0" "$OPEN_NIC1"
  start_kubelet
  start_daemon --config config.yaml
  expect_ask wait nvidia.com/chosen 2 30
  expect_ask allocate nvidia.com/chosen "$OPEN_NIC0"
  expect_ask wait nvidia.com/chosen 1 20
  expect_health "$OPEN_NIC0=Healthy" "$OPEN_NIC1=Unhealthy"
  expect_not_given group-split allocate nvidia.com/chosen "$OPEN_NIC1"
  expect_ask pod default guest compute nvidia.com/chosen "$OPEN_NIC0"
  hold "$OPEN_NIC0"
  until_true 30 said daemon.log "pod default/guest" || fail "the daemon does not tell of the pod"
  expect_ask restart
  expect_ask wait nvidia.com/chosen 1 30
  expect_health "$OPEN_NIC0=Healthy" "$OPEN_NIC1=Unhealthy"
  expect_not_given group-split allocate nvidia.com/chosen "$OPEN_NIC1"
  expect_ask pod-gone default guest
  expect_ask wait nvidia.com/chosen 0 80
  expect_health "$OPEN_NIC0=Unhealthy" "$OPEN_NIC1=Unhealthy"
  for unit in "$OPEN_NIC0" "$OPEN_NIC1"; do
    expect_not_given in-use-holder allocate nvidia.com/chosen "$unit"
    case $answer in *"pid $holder (vfio-probe)"*) ;; *) fail "the holder is not named: $answer" ;; esac
  done
  expect_not_asked
  let_go
  expect_ask wait nvidia.com/chosen 2 80
  expect_ask allocate nvidia.com/chosen "$OPEN_NIC1"
}
check "a group is its pod's, then its holder's, then free: over a restart of the kubelet as well" \
  one_owner

# Four groups with two units each.
race() {
  select_devices "$H100" "$H100_AUDIO" "$CARD_NIC" "$CARD_AUDIO" "$OPEN_NIC0" "$OPEN_NIC1" \
    "$CONVENTIONAL_NIC" "$CONVENTIONAL_EDU"
  start_kubelet
  start_daemon --config config.yaml
  expect_ask wait nvidia.com/chosen 8 60
  set -- plugins/vfio-*.sock
  plugin-call race "$1" "$daemon" "$H100" "$H100_AUDIO" "$CARD_AUDIO" "$CARD_NIC" \
    "$OPEN_NIC0" "$OPEN_NIC1" "$CONVENTIONAL_EDU" "$CONVENTIONAL_NIC" >probe.log ||
    fail "plugin-call ended with $?: $(tail -n 1 probe.log)"
  [ "$(grep -c "^pair=.* given=1$" probe.log)" = 4 ] ||
    fail "$(grep '^pair=' probe.log | grep -m 1 -v given=1)"
  [ "$(grep -c "code=9 .*group-split" probe.log)" = 4 ] || fail "not refused with group-split"
  # For as long as they may be pods': what no pod turns out to have is free again.
  expect_ask saw nvidia.com/chosen 4 20
}
check "of two Allocates that come at the same moment for two units of one group one is refused" race

# What the kubelet keeps over a reboot, in which the group got another number.
stale_answer() {
  select_devices "$LONE_NIC"
  serve_chosen
  expect_ask allocate nvidia.com/chosen "$LONE_NIC"
  expect_ask prestart nvidia.com/chosen "$LONE_NIC"
  until_true 10 test -e "$STATE/answers.json" || fail "the answer is not kept"
  stop_daemon
  group_of "$LONE_NIC"
  sed -i "s/\"group\": $group,/\"group\": 4711,/; s|\"/dev/vfio/$group\"|\"/dev/vfio/4711\"|" \
    "$STATE/answers.json"
  grep -q '"/dev/vfio/4711"' "$STATE/answers.json" || fail "the answer does not name the group"
  start_daemon --config config.yaml
  until_true 30 said daemon.log event=registered || fail "the daemon does not register again"
  expect_ask wait nvidia.com/chosen 1 30
  expect_not_given "IOMMU group 4711 then, $group now" prestart nvidia.com/chosen "$LONE_NIC"
  until_true 10 said daemon.log "event=prestart_refused.*$LONE_NIC" || fail "the log does not say so"
  expect_ask allocate nvidia.com/chosen "$LONE_NIC"
  expect_line "devices[1].host_path=/dev/vfio/$group"
  expect_ask prestart nvidia.com/chosen "$LONE_NIC"
}
check "a container with an answer from before a reboot is refused, and starts with a new one" \
  stale_answer
