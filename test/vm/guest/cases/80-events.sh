# The kernel's events: when they are heard, from which namespaces, and what a storm of them costs.
# The resync is far away in all cases: what the daemon sees it was told of. What is lost is a
# companion: with a group's last device its node would go, which can be seen without an event.

# opens_nothing SECONDS: the daemon opens no file for so long.
opens_nothing() {
  total opens
  last=$total
  sleep "$1"
  total opens
  [ "$total" = "$last" ]
}
# settled: the daemon opens nothing any more.
settled() { opens_nothing 0.5; }
# has_opened: more than `before`.
has_opened() { total opens && [ "$total" -gt "$before" ]; }

# serve_at_rest ARGUMENT...: as serve_chosen, up to the point where the daemon has looked at all that
# it looks at of its own accord: a second after its start, at who has what.
serve_at_rest() {
  serve_chosen "$@"
  count_opens
  until_true 30 opens_nothing 2 || fail "the daemon does not come to rest"
}

# lose_chosen SECONDS ADDRESS: somebody unbinds the device by hand. Sets `after`: the hundredths of a
# second from the kernel's answer to that until the kubelet has heard that the unit is unhealthy. No
# process is started in between.
lose_chosen() {
  echo "saw nvidia.com/chosen 0 $1" >&5
  read -r begun _ </proc/uptime
  echo "$2" >"$PCI/drivers/vfio-pci/unbind"
  read -r unbound _ </proc/uptime
  read -t 60 -r answer <&6 || fail "no answer from the fake kubelet"
  read -r heard _ </proc/uptime
  after=$((${heard%.*}${heard#*.} - ${unbound%.*}${unbound#*.}))
  echo "# unbinding took $((${unbound%.*}${unbound#*.} - ${begun%.*}${begun#*.})) hundredths of a" \
    "second, the kubelet heard $after after that: $answer"
}

# expect_heard ADDRESS: the kubelet hears of the loss, and the device is taken again.
expect_heard() {
  lose_chosen 30 "$1"
  case $answer in *'"ok":true'*) ;; *) fail "the loss of $1 went unheard: $answer" ;; esac
  expect_ask wait nvidia.com/chosen 1 30
  expect_usable "$1"
}

seen_at_once() {
  select_devices "$H100"
  serve_at_rest --resync 1h
  best=1000
  for _ in 1 2 3 4 5; do
    expect_heard "$H100_AUDIO"
    [ "$after" -ge "$best" ] || best=$after
  done
  echo "# the best of five: $best hundredths of a second"
  expect_prompt "$best"
}
check "an unbind by hand is with the kubelet at once, the resync being an hour away" seen_at_once

own_network() {
  select_devices "$H100"
  inside="unshare -n"
  serve_at_rest --resync 1h
  expect_heard "$H100_AUDIO"
}
check "kernel events reach a daemon with a network namespace of its own" own_network

# With a process namespace of its own it cannot see the holders, and says so.
own_container() {
  select_devices "$H100"
  inside="unshare -n -m -p -f --mount-proc"
  serve_at_rest --resync 1h
  expect_said daemon.log "not all of them can be seen"
  expect_heard "$H100_AUDIO"
}
check "kernel events reach a daemon with network, mount and process namespaces of its own" \
  own_container

# The kernel sends events to the network namespaces of its first user namespace alone. A group's node
# that goes is seen all the same.
own_users() {
  load_vfio
  select_devices "$H100"
  inside="unshare -U -r -n"
  serve_at_rest --resync 1h
  expect_said daemon.log event=uevents_unavailable
  lose_chosen 5 "$H100_AUDIO"
  case $answer in *'"ok":true'*) fail "an event came, or it looked by itself" ;; esac
  expect_heard "$H100"
  expect_usable "$H100_AUDIO"
  kill -KILL "$daemon"
  start_daemon --config config.yaml --resync 1s
  until_true 30 said daemon.log event=registered || fail "the daemon does not register again"
  expect_ask wait nvidia.com/chosen 1 30
  expect_heard "$H100_AUDIO"
}
check "in a user namespace of its own a daemon says that no events come, and lives by the resync" \
  own_users

# The network namespace is what counts. Who owns it cannot be seen from below.
own_users_host_network() {
  load_vfio
  select_devices "$H100"
  inside="unshare -U -r"
  serve_at_rest --resync 1h
  said daemon.log event=uevents_unavailable && fail "it says that no events come"
  expect_heard "$H100_AUDIO"
}
check "kernel events reach a daemon in a user namespace that kept the host's network" \
  own_users_host_network

# So what waited for a guest's end is taken up at the resync.
open_and_close() {
  select_devices "$LONE_NIC"
  serve_at_rest --resync 1h
  until_true 20 settled || fail "the daemon does not come to rest"
  before=$total
  hold "$LONE_NIC"
  let_go
  until_true 20 settled || fail "the daemon does not come to rest"
  [ "$total" = "$before" ] || fail "the daemon opened $((total - before)) files"
}
check "the kernel sends no event when a guest opens or closes its group" open_and_close

# Pictures are counted by the files that the kernel opens for the daemon.
storm() {
  select_devices "$LONE_NIC"
  serve_at_rest --resync 1h
  until_true 20 settled || fail "the daemon does not come to rest"
  before=$total
  echo change >"$PCI/devices/$NODE1_NIC/uevent"
  until_true 20 has_opened || fail "one event makes no picture"
  until_true 20 settled || fail "the daemon does not come to rest"
  picture=$((total - before))
  before=$total
  started=$(hundredths)
  i=0
  while [ "$i" -lt 10000 ]; do
    echo change >"$PCI/devices/$NODE1_NIC/uevent"
    i=$((i + 1))
  done
  took=$(($(hundredths) - started))
  until_true 30 settled || fail "the daemon does not come to rest"
  pictures=$(((total - before + picture - 1) / picture))
  echo "# 10,000 events in $took hundredths of a second: $pictures pictures of $picture opens"
  # One in 50 ms, one before and one after.
  [ "$pictures" -le $((took / 5 + 2)) ] || fail "$pictures pictures in $took hundredths of a second"
  expect_ask allocate nvidia.com/chosen "$LONE_NIC"
  [ "$(grep -c . daemon.log)" -lt 20 ] || fail "the storm fills the log"
}
check "a storm of 10,000 events costs one picture in 50 ms at most" storm
