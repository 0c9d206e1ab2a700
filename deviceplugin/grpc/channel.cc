#include "deviceplugin/grpc/channel.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/support/channel_arguments.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_format.h"
#include "sysfs/fd.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// What the kubelet may send at once. gRPC takes 4 MiB where it is not told.
constexpr int kLargestAnswer = 16 << 20;

absl::StatusOr<Fd> Connect(const std::string& socket) {
  const std::string what = absl::StrFormat("connect to %s", socket);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof(address.sun_path)) return ErrnoStatus(ENAMETOOLONG, what);
  std::ranges::copy(socket, address.sun_path);
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrnoStatus(what);
  // Over a unix socket it is done, or has failed, on return: EAGAIN means that too many wait.
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) < 0) {
    return ErrnoStatus(what);
  }
  return fd;
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> Dial(const std::string& socket) {
  ASSIGN_OR_RETURN(const Fd fd, Connect(socket));
  // gRPC closes the one that it gets.
  const int dup = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0);
  if (dup < 0) return ErrnoStatus(absl::StrFormat("connect to %s", socket));
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetMaxReceiveMessageSize(kLargestAnswer);
  return grpc::CreateCustomInsecureChannelFromFd(socket, dup, arguments);
}

absl::Status AwaitEnd(grpc::CompletionQueue& queue, grpc::ClientContext& context,
                      const grpc::Status& status, absl::Time deadline) {
  void* tag = nullptr;
  bool ok = false;
  if (queue.AsyncNext(&tag, &ok, absl::ToChronoTime(deadline)) == grpc::CompletionQueue::TIMEOUT) {
    context.TryCancel();
    queue.Next(&tag, &ok);  // comes at once now
    if (!status.ok()) return absl::DeadlineExceededError("the kubelet did not answer in time");
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace vfio_agent
