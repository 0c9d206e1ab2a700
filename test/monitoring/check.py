"""Alerts and dashboard ask only for metrics, labels and sections of the guide that there are.

usage: check.py METRICS, a file with what print-metrics prints; from the project's directory."""

import json
import re
import sys

import yaml

GUIDE = "packaging/OPERATING.md"
ALERTS = "packaging/monitoring/alerts.yaml"
OPERATOR = "packaging/monitoring/prometheusrule.yaml"
DASHBOARD = "packaging/monitoring/dashboard.json"
TESTS = "test/monitoring/alerts_test.yaml"
# What a scrape adds, and what PromQL makes.
SCRAPE_LABELS = {"instance", "job", "le", "node"}

failures = []


def complain(text):
    failures.append(text)
    print(text)


def read_metrics(path):
    """The labels of each name that can stand in an expression."""
    labels = {}
    for line in open(path, encoding="utf-8"):
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
            labels.update({name + suffix: set() for suffix in suffixes})
            if (kind == "counter") != name.endswith("_total"):
                complain(f"{name} is a {kind}")
        elif not line.startswith("#"):
            name = re.match(r"\w+", line)[0]
            labels[name] |= set(re.findall(r'[{,](\w+)="', line))
    return labels


def check_expression(where, text, metrics):
    text = re.sub(r"\$__\w+", "5m", text)
    names = re.findall(r"\bvfio_agent_\w+", text)
    if not names:
        complain(f"{where}: {text} asks for no metric of the agent")
    known = set(SCRAPE_LABELS)
    for name in names:
        if name not in metrics:
            complain(f"{where}: there is no metric {name}")
        known |= metrics.get(name, set())
    for name, selector in re.findall(r"\b(vfio_agent_\w+)\{([^}]*)\}", text):
        for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", re.sub(r'"[^"]*"', '""', selector)):
            if label not in metrics.get(name, set()) | SCRAPE_LABELS:
                complain(f"{where}: {name} has no label {label}")
    for listed in re.findall(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)", text):
        for label in filter(None, (word.strip() for word in listed.split(","))):
            if label not in known:
                complain(f"{where}: no metric of it has the label {label}")
    return names


def anchors():
    headings = re.findall(r"^#+ (.*)$", open(GUIDE, encoding="utf-8").read(), re.MULTILINE)
    return {"#" + re.sub(r"[^a-z0-9_-]", "", heading.lower().replace(" ", "-")) for heading in headings}


def check_alerts(metrics):
    rules = yaml.safe_load(open(ALERTS, encoding="utf-8"))
    if yaml.safe_load(open(OPERATOR, encoding="utf-8"))["spec"] != rules:
        complain(f"{OPERATOR} is not {ALERTS}: copy the groups")
    tests = open(TESTS, encoding="utf-8").read()
    sections = anchors()
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    for rule in alerts:
        name = rule["alert"]
        check_expression(name, rule["expr"], metrics)
        if rule["labels"].get("severity") not in ("critical", "warning"):
            complain(f"{name} has no severity")
        for key in ("summary", "description", "runbook"):
            if not rule["annotations"].get(key):
                complain(f"{name} has no {key}")
        if rule["annotations"].get("runbook") not in sections:
            complain(f"{name}: {GUIDE} has no section {rule['annotations'].get('runbook')}")
        if not re.search(rf"\b{name}\b", tests) and name.removeprefix("VfioAgent") not in tests:
            complain(f"{name} has no test in {TESTS}")
    return len(alerts)


def check_dashboard(metrics):
    panels = json.load(open(DASHBOARD, encoding="utf-8"))["panels"]
    if len({panel["id"] for panel in panels}) != len(panels):
        complain(f"{DASHBOARD}: two panels have the same id")
    asked = set()
    for panel in panels:
        if not panel["targets"]:
            complain(f"{panel['title']}: nothing is asked")
        for target in panel["targets"]:
            asked |= set(check_expression(panel["title"], target["expr"], metrics))
    base = lambda name: re.sub(r"_(bucket|sum|count)$", "", name)
    shown = {base(name) for name in asked} | {"vfio_agent_kubelet_up", "vfio_agent_waiting"}
    for name in sorted({base(name) for name in metrics} - shown):
        complain(f"{DASHBOARD} does not show {name}")
    return len(panels)


known = read_metrics(sys.argv[1])
if len(known) < 20:
    complain(f"only {len(known)} metrics in {sys.argv[1]}")
alert_count, panel_count = check_alerts(known), check_dashboard(known)
print(f"{len(known)} metrics, {alert_count} alerts, {panel_count} panels, {len(failures)} complaints")
sys.exit(1 if failures else 0)
