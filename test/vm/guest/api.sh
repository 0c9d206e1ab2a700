# The fake API server with one Node, and a way to it as a pod has one.

SERVICE_ACCOUNT=/var/run/secrets/kubernetes.io/serviceaccount
NODE_PATH=/api/v1/nodes/vm
MODE_LABEL=nvidia.com/gpu.workload.config

# True where the agent has a library to talk to it; else says why not.
have_api() {
  [ ! -e /guest/no-api ] && return
  note "modes by a label are not tried: $(cat /guest/no-api)"
  return 1
}

# start_api MODE: the Node's label says so. Agents that are started from now on find the server by
# their environment, and the token where the kubelet puts it.
start_api() {
  mkfifo "$TMP/api-ask" "$TMP/api-answer"
  exec 8<>"$TMP/api-ask" 9<>"$TMP/api-answer"
  later rm -rf "$SERVICE_ACCOUNT"
  fake-apiserver --dir "$SERVICE_ACCOUNT" <&8 >&9 2>"$TMP/api.log" &
  echo $! >>"$TMP/pids"
  read_api
  case $answer in *'"ready":true'*) ;; *) fail "the fake API server is not ready: $answer" ;; esac
  port=${answer##*:}
  export KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT="${port%%\"*}" NODE_NAME=vm
  expect_api node vm "$MODE_LABEL=$1"
}

read_api() {
  read -t 100 -r answer <&9 || fail "no answer from the fake API server"
  echo "API server: $answer"
}

# expect_api COMMAND...: one command of the fake API server; its answer as lines.
expect_api() {
  echo "$*" >&8
  read_api
  echo "$answer" | json-lines >"$TMP/lines"
  grep -qxF ok=true "$TMP/lines" || fail "API server: $*: $answer"
}

label_node() { expect_api label vm "$MODE_LABEL=$1"; }

# expect_condition STATUS REASON: of PassthroughReady; the kubelet's condition is the other one.
expect_condition() {
  expect_api wait "$NODE_PATH" /status/conditions/1/reason "$2" 90
  expect_api get "$NODE_PATH"
  condition="object.status.conditions[1]"
  expect_line "$condition.type=PassthroughReady" "$condition.status=$1" "$condition.reason=$2"
}

# expect_mode MODE STATE: by the Node's labels and by the agent's own word. After a time without the
# API server it tries again within a minute.
expect_mode() {
  expect_api wait "$NODE_PATH" /metadata/labels/vfio-agent~1mode "$1" 90
  expect_api wait "$NODE_PATH" /metadata/labels/vfio-agent~1mode.state "$2" 90
  agent status -o json
  json-lines <out >lines
  expect_line "mode.mode=$1" "mode.state=$2" "mode.label=$MODE_LABEL"
}

# select_by_label DEFAULT ADDRESS...: these, in a mode that the Node's label says.
select_by_label() {
  default=$1
  shift
  select_devices "$@"
  echo "mode: {fromNodeLabel: $MODE_LABEL, default: $default, settle: 0s, waitForHolders: 1s}" \
    >>config.yaml
}
