#include "deviceplugin/kubelet/stale_sockets.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>

#include "absl/strings/str_format.h"
#include "sysfs/fd.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

enum class Answer { kListens, kDead, kUnclear };

// Asks by connecting, which does not wait: a full queue is an answer too.
Answer Ask(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return Answer::kUnclear;
  std::ranges::copy(path, address.sun_path);
  const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Answer::kUnclear;
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ||
      errno == EAGAIN) {
    return Answer::kListens;
  }
  return errno == ECONNREFUSED ? Answer::kDead : Answer::kUnclear;
}

bool IsHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "vfio-<8 hex>-<8 hex>-<number>.sock", and the same with a dot in place of the "v": what a socket
// is called until it listens (listener.cc).
bool HasOurForm(std::string_view name) {
  constexpr std::string_view kBegin = "vfio-";
  constexpr std::string_view kHidden = ".fio-";
  constexpr std::string_view kEnd = ".sock";
  if (!name.starts_with(kBegin) && !name.starts_with(kHidden)) return false;
  if (!name.ends_with(kEnd)) return false;
  name.remove_prefix(kBegin.size());
  if (name.size() < 18 + kEnd.size()) return false;
  name.remove_suffix(kEnd.size());
  return IsHex(name.substr(0, 8)) && name[8] == '-' && IsHex(name.substr(9, 8)) &&
         name[17] == '-' && IsNumber(name.substr(18));
}

// File names of the sockets themselves: a link to one is none.
std::vector<std::string> SocketsIn(const std::string& dir) {
  std::vector<std::string> names;
  std::error_code error;  // a directory that cannot be read has none for us
  std::filesystem::directory_iterator entry(dir, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::error_code gone;
    if (std::filesystem::is_socket(entry->symlink_status(gone))) {
      names.push_back(entry->path().filename());
    }
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

StaleSockets RemoveStaleSockets(const std::string& dir) {
  StaleSockets stale;
  for (const std::string& name : SocketsIn(dir)) {
    const std::string path = absl::StrFormat("%s/%s", dir, name);
    if (!HasOurForm(name) || Ask(path) != Answer::kDead) continue;
    if (::unlink(path.c_str()) == 0) {
      stale.removed.push_back(path);
    } else if (errno != ENOENT) {
      stale.kept.push_back(Message(ErrnoStatus(path)));
    }
  }
  return stale;
}

bool SomebodyListens(const std::string& path) { return Ask(path) == Answer::kListens; }

std::string KubeVirtSocketName(const std::string& resource) {
  std::string name = resource;
  std::ranges::replace(name, '/', '-');
  return absl::StrFormat("kubevirt-%s.sock", name);
}

std::vector<std::string> OtherPlugins(const std::string& dir) {
  std::vector<std::string> others = SocketsIn(dir);
  std::erase_if(others, [&dir](const std::string& name) {
    return name == "kubelet.sock" || HasOurForm(name) ||
           !SomebodyListens(absl::StrFormat("%s/%s", dir, name));
  });
  return others;
}

}  // namespace vfio_agent
