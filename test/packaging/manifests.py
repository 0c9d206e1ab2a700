"""Renders the kustomizations and the chart, for manifests_test.py, whose command line this reads."""

import copy
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import jsonschema
    import yaml
except ImportError as error:
    print(f"skipped: {error} (packages python3-yaml, python3-jsonschema)")
    sys.exit(77)

SOURCE, AGENT, RENDER = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
CHART = SOURCE / "packaging/helm/vfio-agent"
KUSTOMIZE = SOURCE / "packaging/kustomize"
# The chart's values that say what an overlay says.
OVERLAYS = {
    "base": {},
    "overlays/nfd": {"nfd": {"enabled": True}},
    "overlays/openshift": {"openshift": {"enabled": True}},
    "overlays/api": {"api": {"enabled": True}},
    "overlays/dra": {"api": {"enabled": True}, "dra": {"enabled": True}},
    "overlays/monitoring": {"metrics": {name: {"enabled": True} for name in ("podMonitor", "rules", "dashboard")}},
    "overlays/unprivileged": {"privileged": False},
}


def kustomize(folder):
    program = ["kustomize", "build"] if shutil.which("kustomize") else ["kubectl", "kustomize"]
    answer = subprocess.run([*program, str(KUSTOMIZE / folder)], check=True, capture_output=True, text=True)
    return list(yaml.safe_load_all(answer.stdout))


def render(values, release="vfio-agent", kubernetes="v1.33.1"):
    # Helm does the same before it renders.
    jsonschema.validate(values, json.loads((CHART / "values.schema.json").read_text()))
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(values, file)
        file.flush()
        command = [RENDER, str(CHART), "vfio-agent", release, file.name, kubernetes]
        answer = subprocess.run(command, check=True, capture_output=True, text=True)
    text = answer.stdout.split("# Source: NOTES.txt")
    rest = text[0] + text[1].split("\n---\n", 1)[1]
    return [document for document in yaml.safe_load_all(rest) if document]


def one(documents, kind):
    found = [document for document in documents
             if document["kind"] == kind and not document["metadata"]["name"].endswith("-dashboard")]
    assert len(found) == 1, f"{len(found)} of kind {kind}"
    return found[0]


def by_name(items):
    return {item["name"]: item for item in items}


def plain(documents):
    """What has to be the same in both: no helper labels, no test, no namespace, lists by name."""
    result = {}
    for document in copy.deepcopy(documents):
        if document["kind"] in ("Namespace", "Pod"):
            continue
        for part in (document, document.get("spec", {}).get("template", {})):
            drop_labels(part.get("metadata", {}), "labels")
        for selector in (document.get("spec", {}).get("selector"),):
            drop_labels(selector or {}, "matchLabels")
        if document["kind"] == "ConfigMap":
            document["data"] = {key: yaml.safe_load(text) for key, text in document["data"].items()}
        result[(document["kind"], document["metadata"]["name"])] = document
    for (kind, _), document in result.items():
        if kind == "DaemonSet":
            plain_pod(document["spec"]["template"]["spec"])
    return result


def drop_labels(holder, key):
    labels = {name: value for name, value in holder.pop(key, {}).items()
              if not name.startswith(("app.kubernetes.io/", "helm.sh/"))}
    if labels:
        holder[key] = labels


def plain_pod(pod):
    container = pod["containers"][0]
    # In the base the file says these; the chart has values for them.
    container.pop("imagePullPolicy", None)
    env = {row["name"]: row.get("value") for row in container.pop("env", [])}
    for name, told in (("LOG_LEVEL", "info"), ("LOG_FORMAT", "json"), ("METRICS_LISTEN", ":9431"),
                       ("DEVICE_PLUGIN_DIR", "/var/lib/kubelet/device-plugins"),
                       ("KUBELET_ROOT_DIR", "/var/lib/kubelet")):
        assert env.pop("VFIO_AGENT_" + name, told) == told, name
    container["env"] = env
    container["volumeMounts"] = by_name(container["volumeMounts"])
    pod["volumes"] = by_name(pod["volumes"])


def without_settings(document):
    """The file's log and metrics are the chart's own values."""
    if document["kind"] == "ConfigMap" and "config.yaml" in document["data"]:
        for key in ("log", "metrics"):
            document["data"]["config.yaml"].pop(key, None)
    return document
