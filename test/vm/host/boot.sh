# One boot of the virtual machine. Sourced by run.sh.

kernel_arguments="console=ttyS0 quiet loglevel=4 panic=-1 rdinit=/init"
# What an emulated processor needs not to lose time on.
kernel_arguments+=" tsc=reliable no_timer_check mitigations=off random.trust_cpu=on nokaslr"

# boot SUITE DIR SECONDS KERNEL_ARGUMENT...: runs the guest's cases of SUITE; the console goes to
# DIR/serial.log, the verdicts to DIR/results.log and, as they come, to stdout. False where the
# guest did not come to its end within SECONDS.
boot() {
  local suite=$1 dir=$2 deadline=$((SECONDS + $3)) shown=0
  shift 3
  mkdir -p "$dir"
  : >"$dir/results.log"
  truncate -s 0 "$dir/disk.img" && truncate -s 16M "$dir/disk.img"
  LD_PRELOAD=$fakepci qemu-system-x86_64 "${machine[@]}" \
    -kernel "$kernel/boot/vmlinuz-$release" -initrd "$image" \
    -append "$kernel_arguments VM_SUITE=$suite $*" \
    -drive "if=none,id=disk,format=raw,file=$dir/disk.img" \
    -serial "file:$dir/serial.log" -serial "file:$dir/results.log" \
    </dev/null >"$dir/qemu.log" 2>&1 {lock}>&- &
  qemu=$!
  while kill -0 "$qemu" 2>/dev/null && ((SECONDS < deadline)); do
    show_results "$dir/results.log"
    sleep 0.5
  done
  kill -KILL "$qemu" 2>/dev/null
  wait "$qemu" 2>/dev/null
  qemu=
  show_results "$dir/results.log"
  grep -q '^done' "$dir/results.log"
}

# Prints the lines beyond the first `shown`, as far as they are complete.
show_results() {
  local complete
  complete=$(wc -l <"$1")
  ((complete > shown)) || return
  head -n "$complete" "$1" | tail -n "+$((shown + 1))" | tr -d '\r' | grep -v '^done'
  shown=$complete
}
