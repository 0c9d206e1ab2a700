#!/bin/bash
# Installs what is needed, builds what is shipped and runs every test on it; the one named `fuzz`
# builds the parsers once more, with clang and libFuzzer, and fuzzes each for a minute.
#
#   test/run.sh [CTEST ARGUMENT...]     for instance: test/run.sh -L unit, test/run.sh -R '^vm$'
#
# Ends with CTest's own lines and its exit code.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packaging/install-dependencies.sh --build --simulate --run --package
packaging/install-dependencies.sh --test ||
  echo "without those packages the tests that need them are skipped" >&2

cmake --preset release -DBUILD_TESTING=ON
# One compiler for each processor: they take up to 700 MB each.
cmake --build --preset release --parallel "$(nproc)"
exec ctest --test-dir build/release --output-on-failure --parallel 2 "$@"
