# What makes a unit unhealthy without its driver link: the node that is gone, the bus's errors.

# heard COMMAND...: the kubelet has `expected` healthy devices then. Sets `after`: the hundredths of a
# second from before the command until it has heard so.
heard() {
  echo "wait nvidia.com/chosen $expected 30" >&5
  read -r begun _ </proc/uptime
  "$@" || fail "$*"
  read -t 60 -r answer <&6 || fail "no answer from the fake kubelet"
  read -r ended _ </proc/uptime
  case $answer in *'"ok":true'*) ;; *) fail "$*: went unheard: $answer" ;; esac
  after=$((${ended%.*}${ended#*.} - ${begun%.*}${begun#*.}))
}

# The kernel sends no event of its own for either: only the directory tells.
node_goes_and_comes() {
  select_devices "$LONE_NIC"
  serve_chosen --resync 1h
  group_of "$LONE_NIC"
  IFS=: read -r major minor <"/sys/class/vfio/$group/dev"
  # One that was made by hand the kernel does not remove.
  later rm -f "/dev/vfio/$group"
  best_gone=1000 best_back=1000
  for _ in 1 2 3 4 5; do
    expected=0 && heard rm "/dev/vfio/$group"
    [ "$after" -ge "$best_gone" ] || best_gone=$after
    expected=1 && heard mknod "/dev/vfio/$group" c "$major" "$minor"
    [ "$after" -ge "$best_back" ] || best_back=$after
  done
  expect_said daemon.log node-missing
  expect_usable "$LONE_NIC"
  echo "# best of five: $best_gone hundredths of a second until unhealthy, $best_back until healthy"
  expect_prompt "$best_gone" "$best_back"
}
check "a group's node that is removed and made again is with the kubelet at once, both times" \
  node_goes_and_comes

# total_of ADDRESS FILE WORDS: sets `count` from one of the kernel's AER counters, the number that
# follows the words in a line of its own.
total_of() {
  counters=$PCI/devices/$1/$2
  [ -r "$counters" ] || fail "$counters is not there"
  count=$(sed -n "s/^$3\([0-9][0-9]*\)$/\1/p" "$counters")
  [ -n "$count" ] || fail "$counters has no line '$3' with a number"
}

# inject_fatal BUS: a malformed TLP (bit 18 of the uncorrectable errors) of function 0 of slot 0, as
# the kernel's aer_inject takes it: bus, device, function, and a padding byte; then 32-bit numbers,
# the first the uncorrectable errors.
inject_fatal() {
  zero='\000\000\000\000'
  printf "\\x$1\\000\\000\\000\\000\\000\\004\\000$zero$zero$zero$zero$zero$zero" >/dev/aer_inject
}

# True once the listener has heard of a change that is no error.
is_listening() {
  echo change >"$PCI/devices/$NODE1_NIC/uevent"
  said events.log "^DEVPATH=.*/$NODE1_NIC$"
}

# The kernel reads an endpoint's own status only where the error is not fatal. Its event, the number
# at the root port and a reset of all that is below are what a fatal one leaves behind.
fatal_error() {
  load_vfio
  bind_by_hand "$NODE1_NIC" vfio-pci
  port=$(readlink -f "$PCI/devices/$NODE1_NIC/..")
  port=${port##*/}
  total_of "$NODE1_NIC" aer_dev_fatal "TOTAL_ERR_FATAL "
  total_of "$port" aer_rootport_total_err_fatal ""
  before=$count
  modprobe aer_inject || fail "aer_inject cannot be loaded"
  later rmmod aer_inject
  in_background busybox uevent env >events.log
  until_true 20 is_listening || fail "no event is heard"
  inject_fatal 41
  until_true 20 said events.log ERROR_EVENT=SUCCESSFUL_RECOVERY || fail "no event of the recovery"
  said events.log ERROR_EVENT=BEGIN_RECOVERY || fail "no event of the error"
  total_of "$port" aer_rootport_total_err_fatal ""
  [ "$count" = $((before + 1)) ] || fail "$port has counted $before and $count fatal errors"
  total_of "$NODE1_NIC" aer_dev_fatal "TOTAL_ERR_FATAL "
  [ "$count" = 0 ] || fail "$NODE1_NIC has counted $count fatal errors: the agent could go by that"
  expect_usable "$NODE1_NIC"
}
check "a fatal PCIe error of an endpoint is counted at its root port alone, and sends events" \
  fatal_error

fatal_error_served() {
  select_devices "$NODE1_NIC" "$LONE_NIC"
  start_kubelet
  start_daemon --config config.yaml --resync 1h
  expect_ask wait nvidia.com/chosen 2 30
  modprobe aer_inject || fail "aer_inject cannot be loaded"
  later rmmod aer_inject
  expected=1 && heard inject_fatal 41
  expect_health "$NODE1_NIC=Unhealthy" "$LONE_NIC=Healthy"
  expect_not_given aer-fatal allocate nvidia.com/chosen "$NODE1_NIC"
  kill -HUP "$daemon"
  expect_ask wait nvidia.com/chosen 2 30
  expect_usable "$NODE1_NIC"
}
check "a fatal PCIe error makes its unit unhealthy, until the operator has seen to it" fatal_error_served
