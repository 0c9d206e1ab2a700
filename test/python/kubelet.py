"""A kubelet in Python, as far as a device plugin meets it: Registration, the dial back, the list,
and PodResources. Methods are named by their paths on the wire; messages are bytes."""

import os
import threading
from concurrent import futures

import grpc
from proto import deviceplugin_v1beta1_pb2 as api
from proto import podresources_v1_pb2 as pods_api

REGISTER = "/v1beta1.Registration/Register"
OPTIONS = "/v1beta1.DevicePlugin/GetDevicePluginOptions"
LIST_AND_WATCH = "/v1beta1.DevicePlugin/ListAndWatch"
ALLOCATE = "/v1beta1.DevicePlugin/Allocate"
PREFERRED = "/v1beta1.DevicePlugin/GetPreferredAllocation"
PRE_START = "/v1beta1.DevicePlugin/PreStartContainer"
POD_LIST = "/v1.PodResourcesLister/List"
POD_GET = "/v1.PodResourcesLister/Get"
POD_ALLOCATABLE = "/v1.PodResourcesLister/GetAllocatableResources"


class Recorder(grpc.GenericRpcHandler):
    """Serves the given paths with functions of bytes, and notes every path that is asked for."""

    def __init__(self, handlers):
        self._handlers = handlers
        self.asked = []

    def service(self, handler_call_details):
        self.asked.append(handler_call_details.method)
        handler = self._handlers.get(handler_call_details.method)
        return handler and grpc.unary_unary_rpc_method_handler(handler)


class Plugin:
    """The other side of one registration."""

    def __init__(self, path, request):
        self.request = request
        self.channel = grpc.insecure_channel(
            "unix:" + path,
            options=[("grpc.default_authority", "localhost"), ("grpc.use_local_subchannel_pool", 1)],
        )
        self.options = api.DevicePluginOptions.FromString(self.call(OPTIONS, b""))
        self.stream = None

    def call(self, path, request):
        """The answer's bytes; raises grpc.RpcError."""
        return self.channel.unary_unary(path)(request, timeout=15, wait_for_ready=True)


class Kubelet:
    def __init__(self, plugin_dir, root_dir):
        self.plugin_dir, self.root_dir = plugin_dir, root_dir
        self.registration = Recorder({REGISTER: self._register})
        self.pod_resources = Recorder({POD_LIST: self._list_pods, POD_GET: self._get_pod})
        self.registered = []  # the bytes of all Register calls
        self.pods = pods_api.ListPodResourcesResponse()
        self._changed = threading.Condition()
        self._lists = {}  # the newest raw list of the newest registration, by resource
        self._plugins = {}
        self._servers = []
        self._readers = []

    def start(self):
        pod_dir = os.path.join(self.root_dir, "pod-resources")
        for directory in (self.plugin_dir, pod_dir):
            os.makedirs(directory, exist_ok=True)
        for entry in os.scandir(self.plugin_dir):
            if not entry.is_file() and not entry.is_dir():
                os.unlink(entry.path)
        self._serve(pod_dir, self.pod_resources)
        self._serve(self.plugin_dir, self.registration)

    def stop(self):
        for server in self._servers:
            server.stop(grace=None).wait()
        with self._changed:
            plugins = list(self._plugins.values())
            self._plugins, self._lists, self._servers = {}, {}, []
        for plugin in plugins:
            if plugin.stream:
                plugin.stream.cancel()
            plugin.channel.close()
        for reader in self._readers:
            reader.join()
        self._readers = []

    def plugin(self, resource):
        with self._changed:
            return self._plugins[resource]

    def wait_for_list(self, resource, wanted, seconds=30):
        """The newest raw list, once `wanted` holds of it."""
        with self._changed:
            there = self._changed.wait_for(
                lambda: resource in self._lists and wanted(self._lists[resource]), seconds
            )
            raw = self._lists.get(resource, b"")
        if there:
            return raw
        raise AssertionError(f"{resource} has {api.ListAndWatchResponse.FromString(raw)}")

    def _serve(self, directory, handler):
        server = grpc.server(futures.ThreadPoolExecutor(4), handlers=[handler])
        server.add_insecure_port("unix:" + os.path.join(directory, "kubelet.sock"))
        server.start()
        self._servers.append(server)

    def _register(self, request, _):
        self.registered.append(request)
        told = api.RegisterRequest.FromString(request)
        plugin = Plugin(os.path.join(self.plugin_dir, told.endpoint), told)
        with self._changed:
            self._plugins[told.resource_name] = plugin
            self._lists.pop(told.resource_name, None)
        reader = threading.Thread(target=self._watch, args=(plugin,))
        self._readers.append(reader)
        reader.start()
        return b""

    def _watch(self, plugin):
        plugin.stream = plugin.channel.unary_stream(LIST_AND_WATCH)(b"")
        try:
            for raw in plugin.stream:
                with self._changed:
                    if self._plugins.get(plugin.request.resource_name) is plugin:
                        self._lists[plugin.request.resource_name] = raw
                    self._changed.notify_all()
        except grpc.RpcError:
            return  # a stream has no other end: the kubelet learns nothing from which one it was

    def _list_pods(self, request, _):
        pods_api.ListPodResourcesRequest.FromString(request)
        return self.pods.SerializeToString()

    def _get_pod(self, request, context):
        wanted = pods_api.GetPodResourcesRequest.FromString(request)
        for pod in self.pods.pod_resources:
            if (pod.namespace, pod.name) == (wanted.pod_namespace, wanted.pod_name):
                return pods_api.GetPodResourcesResponse(pod_resources=pod).SerializeToString()
        context.abort(grpc.StatusCode.NOT_FOUND, "no such pod")
        return b""
