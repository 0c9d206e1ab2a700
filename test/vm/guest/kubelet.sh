# The daemon and the fake kubelet that it registers with.

# start_daemon ARGUMENT...: `vfio-agent run` in the background; its lines go to daemon.log.
start_daemon() {
  mkdir -p "$TMP/plugins"
  vfio-agent run --device-plugin-dir "$TMP/plugins" --state-dir "$STATE" --unbind-timeout 5s "$@" \
    >"$TMP/daemon.log" 2>&1 &
  daemon=$!
  echo "$daemon" >>"$TMP/pids"
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

# start_kubelet: commands go down one pipe, answers come up the other. Both are opened for reading
# and writing, so that no end waits for the other to appear.
start_kubelet() {
  mkdir -p "$TMP/plugins"
  mkfifo "$TMP/ask" "$TMP/answer"
  exec 5<>"$TMP/ask" 6<>"$TMP/answer"
  fake-kubelet --dir "$TMP/plugins" <&5 >&6 2>"$TMP/kubelet.log" &
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
  read_answer 45
  echo "$answer" | json-lines >"$TMP/lines"
}

expect_ask() {
  ask "$@"
  grep -qxF ok=true "$TMP/lines" || fail "kubelet: $*: $answer"
}
