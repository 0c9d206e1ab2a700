#!/bin/bash
# Writes the seeds of config_space_fuzz: seeds/config_space, from the specifications' own offsets.
#
#   test/fuzz/config_seeds.sh
#
# Run it after a change here and commit what it wrote.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/seeds/config_space"

# image NAME SWITCHES LAST_OFFSET AT=HEX...: one byte of switches (see config_space_fuzz.cc), then
# zeros up to LAST_OFFSET but for the bytes HEX at AT. All numbers are hexadecimal.
image() {
  local name=$1 last=$((16#$3)) put at hex i
  local -a bytes=("$2")
  for ((i = 0; i <= last; i++)); do bytes+=(00); done
  for put in "${@:4}"; do
    at=$((16#${put%%=*} + 1)) hex=${put#*=}
    for ((i = 0; i < ${#hex}; i += 2)); do bytes[at + i / 2]=${hex:i:2}; done
  done
  printf '%b' "$(printf '\\x%s' "${bytes[@]}")" >"$name"
}

# Switches: 02 64 bytes, 04 256, 06 4096; 08 the kernel says 4096; 01 a virtual function; 10 ones; 20 the
# last 8 bytes stand at the end as well.
pcie_endpoint=(00=de103023 06=10 34=40 40=10000200 44=00000010)
root_port=(0e=01 06=10 34=40 40=10004200)
acs=(100=01000114 140=0d000100 144=5f001d00)
image endpoint 0e 47 "${pcie_endpoint[@]}"
image endpoint-without-privilege 0a 3f "${pcie_endpoint[@]:0:3}"
image virtual-function 0f 47 00=ffffffff 06=10 34=40 40=10000200
image root-port-with-acs 0e 147 "${root_port[@]}" "${acs[@]}" 100=01000114
image root-port-without-acs 0e 107 "${root_port[@]}" 100=01000100
image conventional-with-flr 04 57 0e=80 06=10 34=50 50=13000603
image conventional 04 3f 0e=82
image extended-loop 0e 107 "${root_port[@]}" 100=01000110
image standard-loop 0e 53 06=10 34=40 40=05504000 50=09400000
image capability-at-the-end 0e 103 06=10 34=fc fc=10000200 100=00000010
image acs-at-the-end 2e 10b "${root_port[@]}" 100=0100c1ff 104=000000000d000100
image reset-in-the-last-byte 10 42 06=10 34=40 40=130006
image dead 1e 00 00=ff
