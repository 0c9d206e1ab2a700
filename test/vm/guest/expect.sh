# Expectations: each says what it found where it does not hold, and ends the case.

fail() {
  echo "$*" >"$TMP/why"
  exit 1
}

# agent ARGUMENT...: runs the real binary. Its answer is in the files out and err, its exit code in
# `code`; 124 or 143: it did not come back in a minute.
agent() {
  timeout 60 vfio-agent "$@" >out 2>err
  code=$?
}

expect_exit() {
  [ "$code" = "$1" ] && return
  read -r first <err
  fail "exit code $code instead of $1: $first"
}

# plan ARGUMENT...: the plan as lines of "path=value", in the file lines.
plan() {
  agent plan -o json "$@"
  json-lines <out >lines 2>>err || fail "plan -o json is no JSON"
}

# expect_line LINE...: the document has each of these lines.
expect_line() {
  for line in "$@"; do
    grep -qxF -- "$line" lines || fail "no line '$line'"
  done
}

# expect_said FILE TEXT
expect_said() { grep -qF -- "$2" "$1" || fail "$1 does not say '$2'"; }

# The answer or the remarks of the last command have the text.
expect_told() { cat out err | grep -qF -- "$1" || fail "neither out nor err says '$1'"; }

expect_driver() {
  driver_of "$1"
  [ "$driver" = "$2" ] || fail "$1 is bound to $driver, not to $2"
}

expect_no_override() {
  override_of "$1"
  [ "$override" = "(null)" ] || fail "the override of $1 reads '$override'"
}

# The group of a device: viable by the kernel's own word, and its devices open like a guest's.
expect_usable() {
  group_of "$1"
  [ -c "/dev/vfio/$group" ] || fail "/dev/vfio/$group is not there"
  vfio-probe open "$group" "$@" >probe.log 2>&1 ||
    fail "vfio-probe open $group: $(tail -n 1 probe.log)"
}

# expect_unchanged COMMAND...: no driver and no override is different afterwards.
expect_unchanged() {
  machine_state >before
  "$@"
  machine_state >after
  cmp -s before after || fail "it changed: $(diff before after | grep '^[-+][^-+]' | head -n 1)"
}

# The lines of stdin as the file config.yaml.
write_config() {
  {
    echo "apiVersion: vfio-agent/v1"
    cat
  } >config.yaml
}

# select_devices ADDRESS...: a configuration with one resource that selects these.
select_devices() {
  {
    echo "resources:"
    echo "  - name: nvidia.com/chosen"
    echo "    select:"
    for address in "$@"; do echo "      - {address: \"$address\"}"; done
  } | write_config
}
