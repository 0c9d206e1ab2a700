"""vfio-agent and a kubelet that shares no line with it: another language, another gRPC, and the
numbers of fields and the paths of methods written down a second time."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import grpc
from kubelet import ALLOCATE, OPTIONS, POD_ALLOCATABLE, POD_GET, POD_LIST, PREFERRED, PRE_START, REGISTER, Kubelet
from proto import deviceplugin_v1beta1_pb2 as api
from reflected import Reflected
from wire import decode, encode

RESOURCE = "nvidia.com/GH100_H100_SXM5_80GB"
VARIABLE = "PCI_RESOURCE_NVIDIA_COM_GH100_H100_SXM5_80GB"
AGENT, SIM_NODE, MACHINE = sys.argv[1:4]


class Node:
    """A simulated node with the agent on it."""

    def __init__(self):
        self.scratch = tempfile.mkdtemp(prefix="va-py-")
        self.root = self._dir("node")
        self.kubelet = Kubelet(self._dir("dp"), self._dir("kl"))
        self.sim = subprocess.Popen(
            [SIM_NODE, "--machine", MACHINE, "--mount", self.root, "--exit-on-eof"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self.sim.stdout.readline().strip() != "ready":
            raise RuntimeError("the simulated node did not start")
        self.kubelet.start()
        self.log = open(os.path.join(self.scratch, "log"), "w+", encoding="utf-8")
        self.state_dir = self._dir("state")
        command = [AGENT, "run", "--root", self.root, "--state-dir", self.state_dir]
        command += ["--device-plugin-dir", self.kubelet.plugin_dir]
        command += ["--kubelet-root-dir", self.kubelet.root_dir, "--resync", "200ms"]
        self.agent = subprocess.Popen(command, stdout=self.log, stderr=self.log)

    def _dir(self, name):
        path = os.path.join(self.scratch, name)
        os.makedirs(path, exist_ok=True)
        return path

    def control(self, text):
        with open(os.path.join(self.root, ".control"), "w", encoding="utf-8") as file:
            file.write(text)

    def close(self):
        self.agent.send_signal(signal.SIGTERM)
        code = self.agent.wait(timeout=10)
        self.kubelet.stop()
        self.sim.stdin.close()
        self.sim.wait(timeout=10)
        self.sim.stdout.close()
        self.log.close()
        shutil.rmtree(self.scratch)
        return code


def healthy(raw):
    devices = api.ListAndWatchResponse.FromString(raw).devices
    return [device.ID for device in devices if device.health == "Healthy"]


class AgentTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = Node()
        cls.kubelet = cls.node.kubelet

    @classmethod
    def tearDownClass(cls):
        code = cls.node.close()
        assert code == 0, f"the agent ended with {code}"

    def setUp(self):
        self.list = self.kubelet.wait_for_list(RESOURCE, lambda raw: len(healthy(raw)) == 8)
        self.ids = sorted(healthy(self.list))
        self.plugin = self.kubelet.plugin(RESOURCE)

    def assertRefused(self, path, request, *codes):
        with self.assertRaises(grpc.RpcError) as caught:
            self.plugin.call(path, request)
        self.assertIn(caught.exception.code(), codes)
        self.assertTrue(caught.exception.details())

    def test_r3_register_has_its_fields_under_the_kubelets_numbers(self):
        fields = decode(self.kubelet.registered[0])
        self.assertEqual(fields[1], [b"v1beta1"])
        self.assertNotIn(b"/", fields[2][0])
        self.assertEqual(fields[3], [RESOURCE.encode()])
        self.assertLessEqual(set(fields), {1, 2, 3, 4})

    def test_r4_it_asks_the_kubelet_for_its_own_methods_only(self):
        self.assertEqual(set(self.kubelet.registration.asked), {REGISTER})
        self.assertLessEqual(set(self.kubelet.pod_resources.asked),
                             {POD_LIST, POD_GET, POD_ALLOCATABLE})
        self.assertIn(POD_LIST, self.kubelet.pod_resources.asked)

    def test_r4_it_serves_no_other_package(self):
        path = ALLOCATE.replace("/v1beta1.", "/deviceplugin.v1beta1.")
        with self.assertRaises(grpc.RpcError) as caught:
            self.plugin.call(path, b"")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)

    def test_r20_register_tells_the_options_that_are_answered(self):
        told = decode(self.kubelet.registered[-1]).get(4, [b""])[0]
        self.assertEqual(told, self.plugin.call(OPTIONS, b""))
        self.assertLessEqual(set(decode(told)), {1, 2})

    def test_r29_devices_have_id_health_and_node_under_the_kubelets_numbers(self):
        devices = [decode(raw) for raw in decode(self.list)[1]]
        self.assertEqual(len(devices), 8)
        for device in devices:
            self.assertRegex(device[1][0].decode(), r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
            self.assertEqual(device[2], [b"Healthy"])
            for topology in device.get(3, []):
                node = decode(topology)[1][0]
                self.assertLessEqual(set(decode(node)), {1})

    def test_r41_r46_allocate_gives_the_variable_and_the_nodes(self):
        wanted = self.ids[:2]
        container = encode(*((1, name) for name in reversed(wanted)))
        answer = decode(self.plugin.call(ALLOCATE, encode((1, container))))
        self.assertEqual(len(answer[1]), 1)
        fields = decode(answer[1][0])
        variables = {key[1][0]: key[2][0] for key in map(decode, fields[1])}
        self.assertEqual(variables, {VARIABLE.encode(): ",".join(wanted).encode()})
        nodes = [decode(node) for node in fields[3]]
        self.assertEqual(nodes[0][2], [b"/dev/vfio/vfio"])
        self.assertEqual(len({node[1][0] for node in nodes}), len(nodes))
        for node in nodes:
            self.assertEqual(node[1], node[2])
            self.assertRegex(node[2][0].decode(), r"^/dev/vfio/(vfio|[0-9]+|devices/vfio[0-9]+)$")
            self.assertEqual(node[3], [b"mrw"])
            self.assertTrue(os.path.lexists(self.node.root + node[2][0].decode()))
        groups = [node[2][0] for node in nodes if node[2][0][10:].isdigit()]
        self.assertEqual(len(groups), 2)

    def test_r36_several_containers_are_answered_in_order(self):
        request = encode(*((1, encode((1, name))) for name in reversed(self.ids)))
        answers = decode(self.plugin.call(ALLOCATE, request))[1]
        values = [decode(decode(answer)[1][0])[2][0].decode() for answer in answers]
        self.assertEqual(values, self.ids[::-1])

    def test_r37_unknown_duplicate_and_empty_ids_are_errors_with_a_text(self):
        first = self.ids[0]
        for ids in (["0000:ff:1f.7"], [first, "0000:ff:1f.7"], [first, first], [first, ""]):
            with self.subTest(ids=ids):
                request = encode((1, encode(*((1, name) for name in ids))))
                self.assertRefused(
                    ALLOCATE,
                    request,
                    grpc.StatusCode.INVALID_ARGUMENT,
                    grpc.StatusCode.FAILED_PRECONDITION,
                    grpc.StatusCode.NOT_FOUND,
                )

    def test_r49_as_many_are_preferred_as_wanted_and_those_that_must_be(self):
        available = [(1, name) for name in self.ids]
        for size in (1, 3, 8):
            must = self.ids[-1]
            container = encode(*available, (2, must), (3, size))
            answer = decode(self.plugin.call(PREFERRED, encode((1, container))))
            chosen = [name.decode() for name in decode(answer[1][0])[1]]
            self.assertEqual(len(set(chosen)), size)
            self.assertIn(must, chosen)
            self.assertLessEqual(set(chosen), set(self.ids))

    def test_r50_a_container_starts_with_what_it_was_given(self):
        self.plugin.call(ALLOCATE, encode((1, encode((1, self.ids[3])))))
        self.assertEqual(self.plugin.call(PRE_START, encode((1, self.ids[3]))), b"")
        self.assertRefused(
            PRE_START,
            encode((1, "0000:ff:1f.7")),
            grpc.StatusCode.INVALID_ARGUMENT,
            grpc.StatusCode.FAILED_PRECONDITION,
            grpc.StatusCode.NOT_FOUND,
        )

    def test_r28_a_device_that_goes_is_told_as_unhealthy_and_comes_back(self):
        gone = self.ids[5]

        def sick(raw):
            devices = api.ListAndWatchResponse.FromString(raw).devices
            return {device.ID: device.health for device in devices}.get(gone) == "Unhealthy"

        self.node.control(f"remove {gone}")
        try:
            self.kubelet.wait_for_list(RESOURCE, sick)
        finally:
            self.node.control(f"add {gone}")
        self.kubelet.wait_for_list(RESOURCE, lambda raw: not sick(raw) and len(healthy(raw)) == 8)

    def test_r14_another_kubelet_has_the_same_ids_on_another_socket(self):
        before = self.plugin.request.endpoint
        self.kubelet.stop()
        self.kubelet.start()
        again = self.kubelet.wait_for_list(RESOURCE, lambda raw: len(healthy(raw)) == 8)
        self.assertEqual(sorted(healthy(again)), self.ids)
        self.assertNotEqual(self.kubelet.plugin(RESOURCE).request.endpoint, before)

    def test_the_status_socket_can_be_asked_by_reflection_alone(self):
        with Reflected(os.path.join(self.node.state_dir, "status.sock")) as status:
            self.assertEqual(
                status.services(),
                ["grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection",
                 "vfio_agent.status.v1.Status"],
            )
            answer = status.call("vfio_agent.status.v1.Status", "Get")
            self.assertEqual(answer.pid, self.node.agent.pid)
            self.assertEqual([resource.name for resource in answer.resources], [RESOURCE])
            self.assertEqual(len(answer.resources[0].units), 8)
            health = status.call("grpc.health.v1.Health", "Check")
            self.assertEqual(health.status, 1)
            with self.assertRaises(grpc.RpcError) as caught:
                status.call("grpc.health.v1.Health", "Check", service="nobody")
            self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)
            with self.assertRaises(LookupError):
                status.file_of("no.such.Service")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
