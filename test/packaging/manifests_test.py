#!/usr/bin/python3
"""The kustomizations and the chart: both render, both say the same, and both keep the rules that only
the agent's pod can keep. Exit code 77: skipped, with the reason.

    manifests_test.py SOURCE VFIO_AGENT RENDER      RENDER: the program of chart/, or nothing ("")
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True  # nothing into the sources
from manifests import AGENT, KUSTOMIZE, OVERLAYS, RENDER, by_name, kustomize, one, plain, render, without_settings
import yaml  # last: manifests tells where it is missing

MODE_LABEL = "nvidia.com/gpu.workload.config"


class Rules:
    """Of every DaemonSet, whoever made it."""

    def check_pod(self, daemon_set):
        spec = daemon_set["spec"]
        pod = spec["template"]["spec"]
        container = pod["containers"][0]
        # The daemon's socket is there, and the probes ask there, whatever the file is changed to.
        state_dir = by_name(container["env"])["VFIO_AGENT_STATE_DIR"]["value"]
        self.assertIn(state_dir, [mount["mountPath"] for mount in container["volumeMounts"]])
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
        self.assertEqual(container["readinessProbe"]["httpGet"]["port"], container["ports"][0]["name"])
        # What restarts the agent is not asked where every pod of the cluster can hinder the answer.
        for probe in ("startupProbe", "livenessProbe"):
            self.assertEqual(container[probe]["exec"]["command"],
                             ["/usr/bin/vfio-agent", "health", *container["args"][1:]])
            self.assertNotIn("httpGet", container[probe])
        # Each mount has its volume, each volume its mount, and the node's folders keep their place.
        mounts, volumes = by_name(container["volumeMounts"]), by_name(pod["volumes"])
        self.assertEqual(mounts.keys(), volumes.keys())
        for name, volume in volumes.items():
            if "hostPath" in volume:
                self.assertEqual(volume["hostPath"]["path"], mounts[name]["mountPath"])
                self.assertIn("type", volume["hostPath"])
                self.assertFalse(volume["hostPath"]["path"].endswith(".sock"))

    def check_access(self, documents, wanted):
        """Rights in the cluster and a token: both or neither, and no right too many."""
        claims = [document for document in documents if document["metadata"]["name"].endswith("-dra")]
        documents = [document for document in documents if document not in claims]
        for role in claims:
            if role["kind"] == "ClusterRole":
                rules = {rule["resources"][0]: set(rule["verbs"]) for rule in role["rules"]}
                self.assertEqual(rules, {"resourceclaims": {"get"}, "nodes": {"get"}, "resourceslices":
                                         {"list", "watch", "create", "patch", "delete"}})
        pod = one(documents, "DaemonSet")["spec"]["template"]["spec"]
        tokens = [source for volume in pod["volumes"] for source in volume.get("projected", {}).get("sources", [])
                  if "serviceAccountToken" in source]
        roles = [document for document in documents if document["kind"] in ("ClusterRole", "ClusterRoleBinding")]
        self.assertEqual((len(tokens), len(roles)), (1, 2) if wanted else (0, 0))
        if not wanted:
            return
        rules = {(group, resource): set(rule["verbs"]) for rule in one(documents, "ClusterRole")["rules"]
                 for group in rule["apiGroups"] for resource in rule["resources"]}
        self.assertEqual(rules, {("", "nodes"): {"get", "list", "watch", "patch"}, ("", "nodes/status"): {"patch"},
                                 ("events.k8s.io", "events"): {"create", "patch"}})
        subject = one(documents, "ClusterRoleBinding")["subjects"][0]
        self.assertEqual(subject["name"], pod["serviceAccountName"])
        self.assertEqual(subject["namespace"], one(documents, "DaemonSet")["metadata"]["namespace"])
        # The agent looks for them there.
        mounts = by_name(pod["containers"][0]["volumeMounts"])
        self.assertEqual(mounts["api-token"]["mountPath"], "/var/run/secrets/kubernetes.io/serviceaccount")

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
                self.check_access(documents, str(folder).endswith(("/api", "/dra")))
                enforce = one(documents, "Namespace")["metadata"]["labels"]
                self.assertEqual(enforce["pod-security.kubernetes.io/enforce"], "privileged")

    def beside_the_base(self, text):
        """What a kustomization of one's own makes, two folders below packaging/kustomize."""
        with tempfile.TemporaryDirectory() as folder:
            for name in ("kustomize", "monitoring"):
                shutil.copytree(KUSTOMIZE.parent / name, Path(folder) / name)
            mine = Path(folder) / "kustomize/overlays/mine"
            mine.mkdir()
            (mine / "kustomization.yaml").write_text(text)
            return kustomize(mine)

    def test_with_the_patch_of_the_api_overlay_the_pod_does_not_go_with_the_label(self):
        text = (KUSTOMIZE / "overlays/api/kustomization.yaml").read_text()
        before, patch = text.split("# patches:\n")
        patch = "patches:\n" + "".join(line.removeprefix("#") for line in patch.splitlines(True))
        selectors = [one(self.beside_the_base(each), "DaemonSet")["spec"]["template"]["spec"]["nodeSelector"]
                     for each in (before, before + patch)]
        self.assertEqual(selectors[0].pop(MODE_LABEL), "vm-passthrough")
        self.assertEqual(*selectors)

    def test_components_go_together(self):
        names = sorted(path.name for path in KUSTOMIZE.glob("components/*"))
        text = {"resources": ["../../base"], "components": [f"../../components/{name}" for name in names]}
        documents = self.beside_the_base(yaml.safe_dump(text))
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

    def test_the_policy_for_own_nodes_is_the_components(self):
        documents = render({"api": {"enabled": True, "ownNodeOnly": True}})
        self.check_access(documents, True)
        self.check_access(render({"api": {"ownNodeOnly": True}}), False)
        mine = [document for document in documents if document["kind"].startswith("ValidatingAdmission")]
        for document in mine:
            document["metadata"].pop("labels")
        path = KUSTOMIZE / "components/api-own-node/policy.yaml"
        self.assertEqual(mine, list(yaml.safe_load_all(path.read_text())))

    def test_policies_and_bindings_for_own_nodes_cover_all_that_a_role_may_write(self):
        documents = render({"api": {"enabled": True, "ownNodeOnly": True}, "dra": {"enabled": True}})
        policies = {policy["metadata"]["name"]: policy["spec"] for policy in documents
                    if policy["kind"] == "ValidatingAdmissionPolicy"}
        bound = [binding["spec"] for binding in documents if binding["kind"] == "ValidatingAdmissionPolicyBinding"]
        self.assertEqual({spec["policyName"] for spec in bound}, set(policies))
        self.assertTrue(all(spec["validationActions"] == ["Deny"] for spec in bound))
        covered = {}
        for spec in policies.values():
            self.assertIn("serviceaccount:vfio-agent:", spec["matchConditions"][0]["expression"])
            for rule in spec["matchConstraints"]["resourceRules"]:
                for resource in rule["resources"]:
                    covered[rule["apiGroups"][0], resource] = (set(rule["operations"]), spec)
        # What a verb of a role comes to as an operation.
        operations = {"create": "CREATE", "patch": "UPDATE", "update": "UPDATE", "delete": "DELETE"}
        for role in (document for document in documents if document["kind"] == "ClusterRole"):
            for rule in role["rules"]:
                group = rule["apiGroups"][0]
                written = {operations[verb] for verb in rule["verbs"] if verb in operations}
                for resource in rule["resources"] if written and group != "events.k8s.io" else []:
                    self.assertLessEqual(written, covered[group, resource][0], resource)
        slices = covered["resource.k8s.io", "resourceslices"][1]["validations"][0]["expression"]
        for side in ("object", "oldObject"):
            self.assertIn(f"({side} == null || has({side}.spec.nodeName) &&", slices)
            self.assertIn(f'["authentication.kubernetes.io/node-name"] == [{side}.spec.nodeName])', slices)

    def test_a_label_that_the_pod_goes_with_cannot_decide_the_mode(self):
        by_label = {"config": {"mode": {"fromNodeLabel": MODE_LABEL}}}
        with self.assertRaises(subprocess.CalledProcessError) as caught:
            render(by_label)
        self.assertIn("config.mode.fromNodeLabel is " + MODE_LABEL, caught.exception.stderr)
        for values in ({**by_label, "nodeSelector": {MODE_LABEL: None}}, {**by_label, "existingConfigMap": "mine"},
                       {"config": {"mode": {"fromNodeLabel": "example.com/mode"}}}, {"config": {"mode": "container"}}):
            with self.subTest(values=values):
                self.check_pod(one(render(values), "DaemonSet"))

    def test_names_follow_the_release(self):
        self.assertEqual(one(render({}, "gpu"), "DaemonSet")["metadata"]["name"], "gpu-vfio-agent")
        found = one(render({"fullnameOverride": "x"}, "gpu"), "DaemonSet")
        self.assertEqual(found["metadata"]["name"], "x")

    def test_without_metrics_there_is_no_port_and_nothing_that_asks_it(self):
        pod = one(render({"metrics": {"enabled": False}}), "DaemonSet")["spec"]["template"]["spec"]
        container = pod["containers"][0]
        self.assertFalse({"ports", "readinessProbe"} & container.keys())
        self.assertLessEqual({"startupProbe", "livenessProbe"}, container.keys())
        self.assertEqual(by_name(container["env"])["VFIO_AGENT_METRICS_LISTEN"]["value"], "")

    def test_extras_reach_the_pod(self):
        pod = one(render({"extraArgs": ["--resync", "10s"], "extraEnv": [{"name": "A", "value": "b"}],
                          "extraVolumes": [{"name": "cdi", "hostPath": {"path": "/var/run/cdi"}}],
                          "extraVolumeMounts": [{"name": "cdi", "mountPath": "/var/run/cdi"}],
                          "image": {"digest": "sha256:" + "0" * 64}, "restartOnConfigChange": True}),
                  "DaemonSet")["spec"]["template"]
        container = pod["spec"]["containers"][0]
        self.assertEqual(container["args"], ["run", "--resync", "10s"])
        self.assertEqual(container["livenessProbe"]["exec"]["command"][1:], ["health", "--resync", "10s"])
        self.assertEqual(container["image"], "vfio-agent@sha256:" + "0" * 64)
        self.assertIn("A", by_name(container["env"]))
        self.assertIn("cdi", by_name(pod["spec"]["volumes"]))
        self.assertEqual(len(pod["metadata"]["annotations"]["checksum/config"]), 64)

    def test_a_cluster_that_does_not_know_the_field_for_apparmor_gets_the_annotation(self):
        key = "container.apparmor.security.beta.kubernetes.io/vfio-agent"
        for version, field in (("v1.25.0", False), ("v1.29.9-eks-1a2b", False), ("v1.30.0", True),
                               ("v1.30.0-gke.1", True), ("v1.33.1+k3s1", True)):
            with self.subTest(version=version):
                pod = one(render({"privileged": False}, kubernetes=version), "DaemonSet")["spec"]["template"]
                context = pod["spec"]["containers"][0]["securityContext"]
                self.assertEqual("appArmorProfile" in context, field)
                self.assertEqual(pod["metadata"].get("annotations", {}), {} if field else {key: "unconfined"})
        # Who writes the whole context, or wants none of it, has no annotation.
        for values in ({}, {"privileged": False, "securityContext": {"runAsUser": 0, "readOnlyRootFilesystem": True}}):
            pod = one(render(values, kubernetes="v1.29.0"), "DaemonSet")["spec"]["template"]
            self.assertNotIn("annotations", pod["metadata"])

    def test_what_the_configuration_needs_of_the_node_is_mounted(self):
        cdi, registry = {"cdi": {"dir": "/etc/cdi"}}, {"kubelet": {"registration": "registry"}}
        iommufd = {"kubelet": {"iommufd": True}}
        for values, name, path in (
                ({"config": cdi}, "cdi", "/etc/cdi"),
                ({"config": registry}, "plugins-registry", "/var/lib/kubelet/plugins_registry"),
                ({"config": registry, "kubeletRootDir": "/k"}, "plugins-registry", "/k/plugins_registry"),
                ({"config": iommufd, "privileged": False}, "dev-iommu", "/dev/iommu")):
            with self.subTest(values=values):
                documents = render(values)
                self.check_pod(one(documents, "DaemonSet"))
                self.check_config(documents)
                container = one(documents, "DaemonSet")["spec"]["template"]["spec"]["containers"][0]
                self.assertEqual(by_name(container["volumeMounts"])[name]["mountPath"], path)
        # What is there already is not mounted twice.
        mine = {"extraVolumes": [{"name": "mine", "hostPath": {"path": "/etc/cdi", "type": "Directory"}}],
                "extraVolumeMounts": [{"name": "mine", "mountPath": "/etc/cdi"}]}
        for values, name in (({"config": iommufd}, "dev-iommu"), ({"config": cdi, **mine}, "cdi"),
                             ({"config": cdi, "existingConfigMap": "mine"}, "cdi")):
            pod = one(render(values), "DaemonSet")["spec"]["template"]["spec"]
            self.assertNotIn(name, by_name(pod["volumes"]))

    def test_the_test_pod_sees_nothing_of_the_host(self):
        pod = one(render({}), "Pod")
        self.assertEqual(pod["metadata"]["annotations"]["helm.sh/hook"], "test")
        self.assertFalse([volume for volume in pod["spec"]["volumes"] if "hostPath" in volume])


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
