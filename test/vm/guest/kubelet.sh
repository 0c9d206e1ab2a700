# The daemon and the fake kubelet that it registers with.

# start_daemon ARGUMENT...: `vfio-agent run` in the background. A case may set `daemon_log`, the file
# that its lines go to, and `inside`, a command that runs it: "unshare -n".
daemon_log=daemon.log
inside=
start_daemon() {
  mkdir -p "$TMP/plugins"
  # shellcheck disable=SC2086
  VFIO_AGENT_UNBIND_TIMEOUT=${VFIO_AGENT_UNBIND_TIMEOUT:-5s} in_background $inside vfio-agent run \
    --device-plugin-dir "$TMP/plugins" --kubelet-root-dir "$TMP/kubelet" --state-dir "$STATE" "$@" \
    >"$TMP/$daemon_log" 2>&1
  daemon=$started_pid
}

# serve_chosen ARGUMENT...: a daemon with the configuration of the case, up to the point where a pod
# could be admitted to one device of nvidia.com/chosen.
serve_chosen() {
  start_kubelet
  start_daemon --config "$TMP/config.yaml" "$@"
  expect_ask wait nvidia.com/chosen 1 30
}

# Hundredths of a second since boot.
hundredths() {
  read -r uptime _ </proc/uptime
  echo "${uptime%.*}${uptime#*.}"
}

# stop_daemon: SIGTERM; `code` is its exit code, `took` the time until then in hundredths.
stop_daemon() {
  started=$(hundredths)
  kill "$daemon"
  wait "$daemon"
  code=$?
  took=$(($(hundredths) - started))
}

# stop_in_time: the same, with 0 and within 2 s, as the manual says. What this machine makes of 2 s
# a sleep beside it tells: as much as that is late, the end may be late as well.
stop_in_time() {
  (
    begun=$(hundredths)
    sleep 2
    echo $(($(hundredths) - begun))
  ) >"$TMP/two-seconds" &
  clock=$!
  stop_daemon
  expect_exit 0
  wait "$clock"
  read -r limit <"$TMP/two-seconds" || fail "the clock has not ended"
  limit=$((2 * limit - 200))
  echo "# ended after $took hundredths of a second, of $limit"
  [ "$took" -le "$limit" ] || fail "it took $took hundredths of a second to end, of $limit"
}

# expect_prompt HUNDREDTHS...: none is more than 30 and what three of the daemon's readings take on
# this machine, by its own figure.
expect_prompt() {
  agent status -o json
  expect_exit 0
  json-lines <out >lines
  reading=$(awk -F= '$1 == "last_reading.took_seconds" { print int($2 * 100) }' lines)
  [ -n "$reading" ] || fail "the status does not say how long its last reading took"
  limit=$((30 + 3 * reading))
  echo "# a reading took $reading hundredths of a second: $* of $limit"
  for figure; do
    [ "$figure" -le "$limit" ] || fail "never before $figure hundredths of a second, of $limit"
  done
}

# start_kubelet: commands go down one pipe, answers come up the other. Both are opened for reading
# and writing, so that no end waits for the other to appear.
start_kubelet() {
  mkdir -p "$TMP/plugins" "$TMP/kubelet"
  mkfifo "$TMP/ask" "$TMP/answer"
  exec 5<>"$TMP/ask" 6<>"$TMP/answer"
  fake-kubelet --dir "$TMP/plugins" --root-dir "$TMP/kubelet" <&5 >&6 2>"$TMP/kubelet.log" &
  echo $! >>"$TMP/pids"
  read_answer 15
  case $answer in *'"ready":true'*) ;; *) fail "the fake kubelet is not ready: $answer" ;; esac
}

# read_answer SECONDS
read_answer() {
  read -t "$1" -r answer <&6 || fail "no answer from the fake kubelet"
  echo "kubelet: $answer"
}

# ask COMMAND...: one command of the fake kubelet; its answer as lines.
ask() {
  echo "$*" >&5
  read_answer 100
  echo "$answer" | json-lines >"$TMP/lines"
}

expect_ask() {
  ask "$@"
  grep -qxF ok=true "$TMP/lines" || fail "kubelet: $*: $answer"
}

# expect_health ADDRESS=HEALTH...: what the kubelet has heard of each.
expect_health() {
  ask list
  for unit; do expect_line "resources.nvidia.com/chosen.devices[${unit%%=*}].health=${unit#*=}"; done
}

# expect_not_given TEXT COMMAND...: the plugin refuses the kubelet's call, with the text.
expect_not_given() {
  text=$1
  shift
  ask "$@"
  grep -qxF ok=false lines || fail "'$*' was answered"
  case $answer in *"$text"*) ;; *) fail "'$*' was refused without '$text': $answer" ;; esac
}
