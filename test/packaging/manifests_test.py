#!/usr/bin/python3
"""The kustomizations and the chart: both render, both say the same, and both keep the rules that only
the agent's pod can keep. Exit code 77: skipped, with the reason.

    manifests_test.py SOURCE VFIO_AGENT RENDER      RENDER: the program of chart/, or nothing ("")
"""

import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
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
    "overlays/monitoring": {"metrics": {name: {"enabled": True} for name in ("podMonitor", "rules", "dashboard")}},
    "overlays/unprivileged": {"privileged": False},
}


def kustomize(folder):
    program = ["kustomize", "build"] if shutil.which("kustomize") else ["kubectl", "kustomize"]
    answer = subprocess.run([*program, str(KUSTOMIZE / folder)], check=True, capture_output=True, text=True)
    return list(yaml.safe_load_all(answer.stdout))


def render(values, release="vfio-agent"):
    # Helm does the same before it renders.
    jsonschema.validate(values, json.loads((CHART / "values.schema.json").read_text()))
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(values, file)
        file.flush()
        command = [RENDER, str(CHART), "vfio-agent", release, file.name]
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


class Rules:
    """Of every DaemonSet, whoever made it."""

    def check_pod(self, daemon_set):
        spec = daemon_set["spec"]
        pod = spec["template"]["spec"]
        container = pod["containers"][0]
        labels = spec["template"]["metadata"]["labels"]
        self.assertLessEqual(spec["selector"]["matchLabels"].items(), labels.items())
        self.assertEqual(spec["updateStrategy"]["rollingUpdate"], {"maxUnavailable": 1, "maxSurge": 0})
        self.assertEqual(pod["priorityClassName"], "system-node-critical")
        self.assertEqual(pod["tolerations"], [{"operator": "Exists"}])
        self.assertFalse(pod["automountServiceAccountToken"])
        self.assertFalse(pod["enableServiceLinks"])
        self.assertNotIn("hostNetwork", pod)
        self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])
        self.assertNotIn("cpu", container["resources"]["limits"])
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            self.assertEqual(container[probe]["httpGet"]["port"], container["ports"][0]["name"])
        # Each mount has its volume, each volume its mount, and the node's folders keep their place.
        mounts, volumes = by_name(container["volumeMounts"]), by_name(pod["volumes"])
        self.assertEqual(mounts.keys(), volumes.keys())
        for name, volume in volumes.items():
            if "hostPath" in volume:
                self.assertEqual(volume["hostPath"]["path"], mounts[name]["mountPath"])
                self.assertIn("type", volume["hostPath"])
                self.assertFalse(volume["hostPath"]["path"].endswith(".sock"))

    def check_config(self, documents):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(one(documents, "ConfigMap")["data"]["config.yaml"])
            file.flush()
            answer = subprocess.run([AGENT, "config", "check", "--config", file.name],
                                    capture_output=True, text=True)
        self.assertEqual(answer.returncode, 0, answer.stderr)


@unittest.skipUnless(shutil.which("kustomize") or shutil.which("kubectl"),
                     "neither kustomize nor kubectl is here")
class Kustomizations(Rules, unittest.TestCase):
    def test_the_base_and_every_overlay_render_and_keep_the_rules(self):
        folders = [path.parent for path in KUSTOMIZE.glob("overlays/*/kustomization.yaml")]
        self.assertGreaterEqual(len(folders), 3)
        for folder in ["base", *folders]:
            with self.subTest(folder=str(folder)):
                documents = kustomize(folder)
                self.check_pod(one(documents, "DaemonSet"))
                self.check_config(documents)
                enforce = one(documents, "Namespace")["metadata"]["labels"]
                self.assertEqual(enforce["pod-security.kubernetes.io/enforce"], "privileged")

    def test_components_go_together(self):
        names = sorted(path.name for path in KUSTOMIZE.glob("components/*"))
        text = {"resources": ["../base"], "components": [f"../components/{name}" for name in names]}
        with tempfile.TemporaryDirectory() as folder:
            for name in ("kustomize", "monitoring"):
                shutil.copytree(KUSTOMIZE.parent / name, Path(folder) / name)
            mine = Path(folder) / "kustomize/all"
            mine.mkdir()
            (mine / "kustomization.yaml").write_text(yaml.safe_dump(text))
            documents = kustomize(mine)
        self.check_pod(one(documents, "DaemonSet"))
        kinds = {document["kind"] for document in documents}
        self.assertLessEqual({"PodMonitor", "ServiceAccount", "RoleBinding"}, kinds)


@unittest.skipUnless(RENDER, "the chart's renderer was not built (packages golang-go, "
                             "golang-github-masterminds-sprig-dev)")
class Chart(Rules, unittest.TestCase):
    def test_the_chart_says_what_the_kustomization_says(self):
        if not (shutil.which("kustomize") or shutil.which("kubectl")):
            self.skipTest("neither kustomize nor kubectl is here")
        self.maxDiff = None
        for folder, values in OVERLAYS.items():
            if not (KUSTOMIZE / folder).exists():
                continue
            with self.subTest(overlay=folder):
                left, right = plain(kustomize(folder)), plain(render(values))
                self.assertEqual(left.keys(), right.keys())
                for name in left:
                    self.assertEqual(without_settings(left[name]), without_settings(right[name]))

    def test_rules_hold_whatever_the_values(self):
        for values in ({}, {"privileged": False}, {"nfd": {"enabled": True}, "openshift": {"enabled": True}},
                       {"fullnameOverride": "gpu", "existingConfigMap": "mine"},
                       {"kubeletRootDir": "/var/lib/k0s/kubelet", "devicePluginDir": "/k/device-plugins"}):
            with self.subTest(values=values):
                documents = render(values)
                self.check_pod(one(documents, "DaemonSet"))
                if "existingConfigMap" in values:
                    self.assertFalse([item for item in documents if item["kind"] == "ConfigMap"])
                else:
                    self.check_config(documents)

    def test_names_follow_the_release(self):
        self.assertEqual(one(render({}, "gpu"), "DaemonSet")["metadata"]["name"], "gpu-vfio-agent")
        found = one(render({"fullnameOverride": "x"}, "gpu"), "DaemonSet")
        self.assertEqual(found["metadata"]["name"], "x")

    def test_without_metrics_there_is_no_port_and_no_probe(self):
        pod = one(render({"metrics": {"enabled": False}}), "DaemonSet")["spec"]["template"]["spec"]
        container = pod["containers"][0]
        self.assertFalse({"ports", "startupProbe", "livenessProbe", "readinessProbe"} & container.keys())
        self.assertEqual(by_name(container["env"])["VFIO_AGENT_METRICS_LISTEN"]["value"], "")

    def test_extras_reach_the_pod(self):
        pod = one(render({"extraArgs": ["--resync", "10s"], "extraEnv": [{"name": "A", "value": "b"}],
                          "extraVolumes": [{"name": "cdi", "hostPath": {"path": "/var/run/cdi"}}],
                          "extraVolumeMounts": [{"name": "cdi", "mountPath": "/var/run/cdi"}],
                          "image": {"digest": "sha256:" + "0" * 64}, "restartOnConfigChange": True}),
                  "DaemonSet")["spec"]["template"]
        container = pod["spec"]["containers"][0]
        self.assertEqual(container["args"], ["run", "--resync", "10s"])
        self.assertEqual(container["image"], "vfio-agent@sha256:" + "0" * 64)
        self.assertIn("A", by_name(container["env"]))
        self.assertIn("cdi", by_name(pod["spec"]["volumes"]))
        self.assertEqual(len(pod["metadata"]["annotations"]["checksum/config"]), 64)

    def test_the_test_pod_sees_nothing_of_the_host(self):
        pod = one(render({}), "Pod")
        self.assertEqual(pod["metadata"]["annotations"]["helm.sh/hook"], "test")
        self.assertFalse([volume for volume in pod["spec"]["volumes"] if "hostPath" in volume])


def without_settings(document):
    """The file's log and metrics are the chart's own values."""
    if document["kind"] == "ConfigMap" and "config.yaml" in document["data"]:
        for key in ("log", "metrics"):
            document["data"]["config.yaml"].pop(key, None)
    return document


class Schema(unittest.TestCase):
    def setUp(self):
        self.schema = json.loads((CHART / "values.schema.json").read_text())
        self.values = yaml.safe_load((CHART / "values.yaml").read_text())
        jsonschema.Draft7Validator.check_schema(self.schema)

    def refused(self, change):
        values = copy.deepcopy(self.values)
        change(values)
        return list(jsonschema.Draft7Validator(self.schema).iter_errors(values))

    def test_the_defaults_are_valid(self):
        self.assertEqual(self.refused(lambda values: None), [])

    def test_every_value_is_in_the_schema_and_every_rule_has_its_value(self):
        self.compare(self.values, self.schema, "")

    def compare(self, values, schema, where):
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False:
            return
        self.assertEqual(set(values), set(properties) - {"global"}, where)
        for key in values:
            if isinstance(values[key], dict):
                self.compare(values[key], properties[key], f"{where}.{key}")

    def test_what_is_misspelt_or_of_another_type_is_refused(self):
        for change in (lambda v: v.update(tolerance=[]), lambda v: v["image"].update(tags="1"),
                       lambda v: v.update(hostPID="yes"), lambda v: v["metrics"].update(port=0),
                       lambda v: v["logging"].update(level="verbose"), lambda v: v.update(maxUnavailable=0),
                       lambda v: v.update(kubeletRootDir="var/lib"),
                       lambda v: v["image"].update(digest="sha256:1"),
                       lambda v: v.update(maxSurge=1), lambda v: v["config"].update(apiVersion="v2")):
            self.assertTrue(self.refused(change))


def main():
    program = unittest.main(argv=sys.argv[:1], verbosity=2, exit=False)
    if not program.result.wasSuccessful():
        return 1
    if program.result.skipped:
        print("skipped: " + "; ".join(sorted({why for _, why in program.result.skipped})))
        return 77
    return 0


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C.UTF-8"
    sys.exit(main())
