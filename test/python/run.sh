#!/bin/bash
# run.sh STUBS AGENT SIM-NODE MACHINE [unittest arguments]: the Python kubelet against the agent.
# STUBS: the folder with protoc's Python output. Exit code 77: skipped.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# Debian's modules belong to Debian's interpreter, whatever else is called python3.
python=/usr/bin/python3
if ! "$python" -c 'import grpc, google.protobuf' 2>/dev/null; then
  echo "skipped: Python's gRPC is missing (packages python3-grpcio, python3-protobuf)"
  exit 77
fi
stubs=$1
shift
export PYTHONPATH=$here:$stubs PYTHONDONTWRITEBYTECODE=1
exec "$python" "$here/agent_test.py" "$@"
