# Who may speak to the plugin, how it makes itself known, and what the kernel has for its answers.

# Whatever the socket's mode: the process is what counts.
other_user() {
  select_devices "$LONE_NIC"
  serve_chosen
  set -- plugins/vfio-*.sock
  [ "$(stat -c %a "$1")" = 600 ] || fail "the mode of $1 is $(stat -c %a "$1")"
  chmod 666 "$1"
  plugin-call allocate "$TMP/$1" "$LONE_NIC" >probe.log || fail "root was turned away"
  su -s /bin/sh nobody -c "id -u && exec plugin-call allocate $TMP/$1 $LONE_NIC" >probe.log
  code=$?
  expect_said probe.log 65534
  [ "$code" = 4 ] || fail "another user's call ended with $code: $(tail -n 1 probe.log)"
  until_true 10 said daemon.log "event=peer_refused.*user 65534" || fail "the log does not say so"
  [ "$(grep -c event=allocated daemon.log)" = 1 ] || fail "the plugin has heard the other user"
  expect_ask allocate nvidia.com/chosen "$LONE_NIC"
}
check "a process of another user is turned away from the plugin's socket, open as it may be" \
  other_user

by_registry() {
  select_devices "$LONE_NIC"
  start_kubelet
  mkdir kubelet/plugins_registry
  in_background plugin-call registry "$TMP/kubelet/plugins_registry" nvidia.com/chosen 1 >probe.log
  start_daemon --config config.yaml --registration registry
  until_true 60 said probe.log healthy=1 || fail "the kubelet does not find the plugin"
  expect_said probe.log "type=DevicePlugin name=nvidia.com/chosen "
  endpoint=$(sed -n 's/.*endpoint=\([^ ]*\).*/\1/p' probe.log)
  plugin-call allocate "$endpoint" "$LONE_NIC" >answer.log || fail "$(tail -n 1 answer.log)"
  group_of "$LONE_NIC"
  expect_said answer.log "nodes=/dev/vfio/vfio,/dev/vfio/$group "
  expect_usable "$LONE_NIC"
  ask list
  grep -q nvidia.com lines && fail "it has registered on kubelet.sock as well"
  stop_daemon
  expect_exit 0
  set -- kubelet/plugins_registry/*.sock
  [ ! -e "$1" ] || fail "$1 stays behind"
}
check "with the registry the kubelet finds the plugin's socket, and nothing calls kubelet.sock" \
  by_registry

# A kernel has cdevs and /dev/iommu, the one or neither. From 6.1 on it has a name for the cdev in
# sysfs also where it makes none.
iommufd() {
  select_devices "$LONE_NIC"
  serve_chosen --iommufd true
  group_of "$LONE_NIC"
  expected="/dev/vfio/vfio /dev/vfio/$group"
  name=$(ls "$PCI/devices/$LONE_NIC/vfio-dev" 2>/dev/null)
  found="no cdevs"
  if [ -n "$name" ] && [ -c "/dev/vfio/devices/$name" ]; then
    found=/dev/vfio/devices/$name
    expected="$expected $found"
    [ ! -c /dev/iommu ] || expected="$expected /dev/iommu"
  fi
  [ -c /dev/iommu ] && iommu=/dev/iommu || iommu="no /dev/iommu"
  echo "# kernel $(uname -r): $found (in sysfs: ${name:-none}), $iommu"
  expect_ask allocate nvidia.com/chosen "$LONE_NIC"
  given=$(sed -n 's/^devices.*\.host_path=//p' lines | tr '\n' ' ')
  [ "$given" = "$expected " ] || fail "Allocate gives $given, there are $expected"
}
check "the answer names the cdev and /dev/iommu where the kernel has them, and only there" iommufd
