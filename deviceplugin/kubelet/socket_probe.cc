#include "deviceplugin/kubelet/socket_probe.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_format.h"
#include "sysfs/fd.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

// 0, or the errno of connecting to what `file` is open on. By its descriptor, so that the name is
// looked up once, inside the tree, and may be longer than an address has room for.
int Connect(const Fd& file) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::ranges::copy(absl::StrFormat("/proc/self/fd/%d", file.get()), address.sun_path);
  const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return errno;
  const auto* const name = reinterpret_cast<const sockaddr*>(&address);
  return ::connect(fd.get(), name, sizeof(address)) == 0 ? 0 : errno;
}

}  // namespace

SocketProbe ProbeSocket(const Tree& tree, std::string_view path, bool ask) {
  SocketProbe probe{.path = "/" + std::string(path)};
  const absl::StatusOr<Fd> file = tree.OpenAt(path, O_PATH);
  if (!file.ok()) {
    probe.error = ErrnoOf(file.status());
    const bool none = probe.error == ENOENT || probe.error == ENOTDIR;
    probe.state = none ? SocketState::kAbsent : SocketState::kUnclear;
    return probe;
  }
  struct stat facts = {};
  if (!ask || ::fstat(file->get(), &facts) != 0 || !S_ISSOCK(facts.st_mode)) {
    probe.state = ask ? SocketState::kUnclear : SocketState::kPresent;
    probe.error = ask ? ENOTSOCK : 0;
    return probe;
  }
  probe.error = Connect(*file);
  // EAGAIN: too many wait, so somebody listens.
  const bool answers = probe.error == 0 || probe.error == EAGAIN;
  probe.state = answers                       ? SocketState::kAnswers
                : probe.error == ECONNREFUSED ? SocketState::kDead
                                              : SocketState::kUnclear;
  return probe;
}

}  // namespace vfio_agent
