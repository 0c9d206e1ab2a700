# The kernel's own account of what the agent does, by its event tracing.

TRACING=/sys/kernel/tracing

# count_calls NAME FUNCTION: counts calls of a kernel function by processes called vfio-agent.
count_calls() {
  echo "p:vm/$1 $2" >>"$TRACING/kprobe_events"
  echo 'hist:keys=common_pid if comm == "vfio-agent"' >"$TRACING/events/vm/$1/trigger"
}

# From now on. The agent writes to sysfs or to nothing that the function is called for.
count_writes() { count_calls writes kernfs_fop_write_iter; }
count_opens() { count_calls opens do_filp_open; }

# total NAME: sets `total`, the calls so far.
total() {
  total=$(sed -n 's/^ *Hits: //p' "$TRACING/events/vm/$1/hist")
  [ -n "$total" ] || fail "the kernel does not count $1"
}

expect_no_writes() {
  total writes
  [ "$total" = 0 ] || fail "the agent wrote to sysfs $total times"
}

stop_counting() {
  for name in writes opens; do
    [ -e "$TRACING/events/vm/$name/trigger" ] || continue
    echo '!hist:keys=common_pid' >"$TRACING/events/vm/$name/trigger"
    echo "-:vm/$name" >>"$TRACING/kprobe_events"
  done
}
