#!/bin/bash
# run.sh (names|promtool) PRINT-METRICS: the metrics, alert rules and dashboard of packaging/monitoring:
# `names` against the program's own list, `promtool` by Prometheus' own checks. Exit code 77: skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
what=$1 print_metrics=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$print_metrics" >"$work/metrics"

names() {
  /usr/bin/python3 -c 'import yaml' 2>/dev/null || {
    echo "skipped: Python's YAML is missing (package python3-yaml)"
    exit 77
  }
  /usr/bin/python3 test/monitoring/check.py "$work/metrics"
}

promtool_checks() {
  command -v promtool >/dev/null || {
    echo "skipped: promtool is missing (package prometheus)"
    exit 77
  }
  promtool check metrics <"$work/metrics"
  promtool check rules packaging/monitoring/alerts.yaml
  # The tests name their rules by a path beside themselves.
  cp packaging/monitoring/alerts.yaml test/monitoring/alerts_test.yaml "$work"
  promtool test rules "$work/alerts_test.yaml"
}

case $what in
  names) names ;;
  promtool) promtool_checks ;;
  *) exit 2 ;;
esac
