# The kernel's own account of what the agent does, by its event tracing.

TRACING=/sys/kernel/tracing
BY_AGENT='if comm == "vfio-agent"'

# start_tracing: once, while nothing else runs. To arm a probe the kernel rewrites the code that it
# runs, and an emulated processor that runs it at that moment jumps to address 0 now and then.
# A probe is a name and the function whose calls by processes called vfio-agent it counts. The agent
# writes to sysfs or to nothing that the first is called for.
start_tracing() {
  for probe in writes=kernfs_fop_write_iter opens=do_filp_open; do
    echo "p:vm/${probe%%=*} ${probe#*=}" >>"$TRACING/kprobe_events"
    echo "hist:keys=common_pid $BY_AGENT" >"$TRACING/events/vm/${probe%%=*}/trigger"
  done
}

# From now on.
count() { echo "hist:keys=common_pid:clear $BY_AGENT" >>"$TRACING/events/vm/$1/trigger"; }
count_writes() { count writes; }
count_opens() { count opens; }

# total NAME: sets `total`, the calls so far.
total() {
  total=$(sed -n 's/^ *Hits: //p' "$TRACING/events/vm/$1/hist")
  [ -n "$total" ] || fail "the kernel does not count $1"
}

expect_no_writes() {
  total writes
  [ "$total" = 0 ] || fail "the agent wrote to sysfs $total times"
}
