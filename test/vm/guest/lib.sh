# What the cases are written with. Processes are dear in an emulated guest: what the shell can do
# itself it does.
. /guest/machine.sh
. /guest/expect.sh
. /guest/kubelet.sh
. /guest/api.sh
. /guest/trace.sh
. /guest/mdev.sh

PCI=/sys/bus/pci
TMP=/run/case
STATE=/var/lib/vfio-agent
read -r ONLY </guest/only
verdicts=0

# check SENTENCE FUNCTION: one case. It runs in a process of its own; the first expectation that
# does not hold ends it. Whatever it leaves behind is put right before the next one.
check() {
  if ! echo "$1" | grep -qE -- "$ONLY"; then return; fi
  rm -rf "$TMP" "$STATE"
  mkdir -p "$TMP"
  cd "$TMP" || return
  echo "=== $1"
  echo "case: $1" >/dev/kmsg
  ("$2") </dev/null 7>&-
  status=$?
  why="the case ended with status $status"
  [ -e why ] && read -r why <why
  # A process that the kernel keeps from ending would keep this shell as well: no wait.
  if [ "$status" = 0 ]; then verdict "ok $1"; else
    show_failure "$why"
    verdict "not ok $1: $why"
  fi
  cd /
  restore_machine
}

verdict() {
  verdicts=$((verdicts + 1))
  echo "$1" >&7
  uptime=$(cut -d' ' -f1 /proc/uptime)
  echo "--- $uptime s: $1"
}

# What is to be read beside the verdicts.
note() { echo "# $1" >&7; }

show_failure() {
  echo "!!! $1"
  for file in out err lines daemon.log probe.log kubelet.log api.log; do
    [ -s "$file" ] || continue
    echo "!!! $file:"
    tail -n 40 "$file"
  done
  echo "!!! the kernel:"
  dmesg | tac | sed '/ case: /q' | tac
}

# stty waits for the line to be sent.
finish() {
  echo "done $verdicts" >&7
  stty -F /dev/ttyS1 cs8
  poweroff -f
}

# The driver link of a device: a name, or "none".
driver_of() {
  driver=none
  [ -e "$PCI/devices/$1/driver" ] || return 0
  driver=$(readlink "$PCI/devices/$1/driver")
  driver=${driver##*/}
}

# group_of DEVICE: a PCI function by its address, or a mediated device by its uuid.
group_of() {
  group=$(readlink /sys/bus/*/devices/"$1"/iommu_group)
  group=${group##*/}
}

override_of() { read -r override <"$PCI/devices/$1/driver_override"; }

# Busybox's modprobe knows no soft dependencies, by which vfio brings its IOMMU driver along.
load_vfio() { modprobe -a vfio_iommu_type1 vfio-pci || fail "the vfio modules cannot be loaded"; }

# bind_by_hand ADDRESS DRIVER: what an operator types. DRIVER "none" leaves it unbound, "" asks the
# kernel for whichever driver it has.
bind_by_hand() {
  driver_of "$1"
  [ "$driver" = none ] || echo "$1" >"$PCI/drivers/$driver/unbind"
  [ "$2" = none ] && return
  echo "$2" >"$PCI/devices/$1/driver_override"
  echo "$1" >"$PCI/drivers_probe"
}

# until_true SECONDS COMMAND...: polls; false when the time is over. The last look comes after that:
# a machine that stood still may have had no other.
until_true() {
  deadline=$(($(date +%s) + $1))
  shift
  until "$@"; do
    if [ "$(date +%s)" -ge "$deadline" ]; then
      "$@"
      return
    fi
    usleep 100000
  done
}

driver_is() { driver_of "$1" && [ "$driver" = "$2" ]; }

# A line of the daemon, of the prober or of the kubelet has come.
said() { grep -q -- "$2" "$TMP/$1"; }

# Every device's driver and override, as one text: equal texts mean that nothing was changed.
machine_state() {
  for path in "$PCI"/devices/*; do
    override_of "${path##*/}"
    echo "${path##*/} $override"
  done
  ls -l "$PCI"/devices/*/driver | sed 's/.* \(\/.*\)/\1/'
}

# later COMMAND...: to be done after the case, however it ends; the last one first.
later() {
  touch "$TMP/later"
  { echo "$*" && cat "$TMP/later"; } >"$TMP/later.new" && mv "$TMP/later.new" "$TMP/later"
}

# in_background COMMAND...: `started_pid` is its process; ended after the case at the latest.
in_background() {
  "$@" &
  started_pid=$!
  echo "$started_pid" >>"$TMP/pids"
}

# open_node NODE: a process has it open until it is ended. A shell takes the standard input of what
# it starts in the background from /dev/null, so the inner one has to open it.
open_node() {
  # shellcheck disable=SC2016
  in_background sh -c 'exec sleep 1000 <"$0"' "$1"
  until_true 10 is_called "$started_pid" sleep || fail "nothing has $1 open"
}
is_called() { read -r comm <"/proc/$1/comm" && [ "$comm" = "$2" ]; }

# has_disk sets `disk`, has_sound `sound`, a node. Both come some time after the driver. The disk
# has its subsystem's number, which need not be that of the controller.
has_disk() {
  disk=$(cd /sys/devices/virtual/nvme-subsystem/* && echo nvme*n1)
  [ -b "/dev/$disk" ]
}
has_sound() {
  set -- "$PCI/devices/$CARD_AUDIO/sound/card"*/controlC*
  sound=/dev/snd/${1##*/}
  [ -c "$sound" ]
}

# hold ADDRESS: a virtual machine has the device open, until let_go.
hold() {
  group_of "$1"
  vfio-probe hold "$group" "$1" 300 >"$TMP/probe.log" 2>&1 &
  holder=$!
  echo "$holder" >>"$TMP/pids"
  until_true 20 said probe.log state=held || fail "vfio-probe cannot hold $1"
}

let_go() {
  kill "$holder"
  wait "$holder" || fail "vfio-probe: $(tail -n 1 "$TMP/probe.log")"
}

no_agent() { ! pidof vfio-agent >/dev/null; }

# Back to what HOST_DRIVERS says, by hand, whatever the case did; and vfio out of the kernel.
restore_machine() {
  if [ -e "$TMP/pids" ]; then
    while read -r pid; do kill -KILL "$pid" 2>/dev/null; done <"$TMP/pids"
  fi
  # Children of a daemon that was ended go on with their plan.
  killall -q -KILL vfio-agent
  until_true 20 no_agent || echo "!!! a vfio-agent does not end"
  [ ! -e "$TMP/later" ] || . "$TMP/later"
  read -r count <"$PCI/devices/$PHYSICAL_FUNCTION/sriov_numvfs"
  [ "$count" = 0 ] || echo 0 >"$PCI/devices/$PHYSICAL_FUNCTION/sriov_numvfs"
  for entry in $HOST_DRIVERS; do
    address=${entry%%=*}
    override_of "$address"
    if [ "$override" != "(null)" ]; then echo >"$PCI/devices/$address/driver_override"; fi
    driver_of "$address"
    [ "$driver" = "${entry#*=}" ] && continue
    [ "$driver" = none ] || echo "$address" >"$PCI/drivers/$driver/unbind"
    echo "$address" >"$PCI/drivers_probe"
  done
  for module in vfio_pci vfio_pci_core vfio_iommu_type1 vfio_virqfd vfio; do
    [ ! -d "/sys/module/$module" ] || rmmod "$module"
  done
}
