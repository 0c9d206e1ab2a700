"""A gRPC client that knows nothing of a server but what reflection tells: the numbers of reflection's
own fields are written down here, everything else is asked for."""

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from wire import decode, encode

REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
FILE_CONTAINING_SYMBOL, LIST_SERVICES = 4, 7  # of a request
FILES, SERVICES, ERROR = 4, 6, 7  # of an answer


class Reflected:
    def __init__(self, socket):
        self._channel = grpc.insecure_channel(
            "unix:" + socket, options=[("grpc.default_authority", "localhost")]
        )
        self._pool = descriptor_pool.DescriptorPool()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._channel.close()

    def _ask(self, field, value):
        requests = iter([encode((field, value))])
        answers = self._channel.stream_stream(REFLECTION)(requests, timeout=15, wait_for_ready=True)
        return decode(next(answers))

    def services(self):
        listed = decode(self._ask(LIST_SERVICES, "")[SERVICES][0])
        return [decode(service)[1][0].decode() for service in listed[1]]

    def file_of(self, symbol):
        answer = self._ask(FILE_CONTAINING_SYMBOL, symbol)
        if ERROR in answer:
            raise LookupError(decode(answer[ERROR][0]))
        file = descriptor_pb2.FileDescriptorProto()
        file.ParseFromString(decode(answer[FILES][0])[1][0])
        return file

    def _message(self, descriptor):
        return message_factory.MessageFactory(self._pool).GetPrototype(descriptor)

    def call(self, service, method, /, **fields):
        """The answer to a request with these fields."""
        try:
            self._pool.FindServiceByName(service)
        except KeyError:
            self._pool.Add(self.file_of(service))
        found = self._pool.FindServiceByName(service).FindMethodByName(method)
        request, answer = self._message(found.input_type), self._message(found.output_type)
        ask = self._channel.unary_unary(
            f"/{service}/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString,
        )
        return ask(request(**fields), timeout=15, wait_for_ready=True)
