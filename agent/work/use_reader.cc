#include "agent/work/use_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "agent/work/child.h"
#include "sysfs/clock.h"
#include "sysfs/fd.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

using nlohmann::json;

constexpr char kUnseen[] = "may be in use: looking at what processes have open does not return";
constexpr char kUnseenRemedy[] =
    "see which process hangs: `ps -eo pid,stat,wchan,comm | grep ' D'`; a dead file server?";

void WriteAll(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = ::write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno != EINTR) return;
    if (n > 0) at += static_cast<size_t>(n);
  }
}

// The text up to its end; nullopt where that does not come in time.
std::optional<std::string> ReadAll(int fd, absl::Duration patience) {
  std::string text;
  const absl::Time end = MonotonicNow() + patience;
  std::array<char, 4096> part = {};
  for (;;) {
    const absl::Duration left = end - MonotonicNow();
    if (left <= absl::ZeroDuration()) return std::nullopt;
    pollfd ready = {.fd = fd, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) <= 0) continue;
    const ssize_t n = ::read(fd, part.data(), part.size());
    if (n == 0) return text;
    if (n > 0) text.append(part.data(), static_cast<size_t>(n));
  }
}

// Runs `ask` in a child. Where nothing comes in time the child's number is left in `stuck`.
std::optional<std::string> AskChild(const std::function<std::string()>& ask,
                                    absl::Duration patience, pid_t& stuck) {
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return std::nullopt;
  if (pid == 0) {
    LeaveParent({write_end.get()}, kLookRights);
    WriteAll(write_end.get(), ask());
    ::_exit(0);
  }
  write_end = Fd();
  std::optional<std::string> text = ReadAll(read_end.get(), patience);
  if (text) {
    ::waitpid(pid, nullptr, 0);
  } else {
    ::kill(pid, SIGKILL);
    stuck = pid;
  }
  return text;
}

UseFacts AllInUse(const std::vector<PciAddress>& devices, const std::vector<int>& groups) {
  UseFacts use{.processes_known = false};
  for (const PciAddress& device : devices) {
    use.devices[device] = {{UseKind::kProcess, kUnseen, kUnseenRemedy}};
  }
  for (const int group : groups) {
    use.groups[group] = {{.command = kEndlessLook}};
  }
  return use;
}

json HoldersToJson(const std::vector<Holder>& holders) {
  json list = json::array();
  for (const Holder& holder : holders) {
    list.push_back({holder.pid, holder.command, holder.pod, holder.node});
  }
  return list;
}

}  // namespace

std::string UseToText(const UseFacts& use) {
  json devices = json::object(), groups = json::object();
  for (const auto& [address, uses] : use.devices) {
    json list = json::array();
    for (const Use& one : uses) {
      list.push_back({static_cast<int>(one.kind), one.text, one.remedy});
    }
    devices[address.ToString()] = list;
  }
  for (const auto& [group, holders] : use.groups) {
    groups[std::to_string(group)] = HoldersToJson(holders);
  }
  const json document = {{"devices", devices}, {"groups", groups}, {"all", use.processes_known}};
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

// From our own child, so it has the right shape or is cut short.
bool UseFromText(std::string_view text, UseFacts& use) {
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return false;
  for (const auto& [address, uses] : document.at("devices").items()) {
    std::vector<Use>& list = use.devices[*PciAddress::Parse(address)];
    for (const json& one : uses) {
      list.push_back({static_cast<UseKind>(one.at(0).get<int>()), one.at(1), one.at(2)});
    }
  }
  for (const auto& [group, holders] : document.at("groups").items()) {
    std::vector<Holder>& list = use.groups[std::stoi(group)];
    for (const json& one : holders) {
      list.push_back({one.at(0).get<int>(), one.at(1), one.at(2), one.at(3)});
    }
  }
  use.processes_known = document.at("all").get<bool>();
  return true;
}

UseFacts UseReader::Read(const Tree& tree, const NodeFacts& facts,
                         const std::vector<PciAddress>& devices, const std::vector<int>& groups,
                         absl::Duration patience) {
  answered_ = false;
  if (stuck_ != 0 && ::waitpid(stuck_, nullptr, WNOHANG) == 0) return AllInUse(devices, groups);
  stuck_ = 0;
  const auto ask = [&] {
    const absl::StatusOr<Tree> own = Tree::Open(tree.root());
    return own.ok() ? UseToText(ReadUse(*own, facts, devices, groups)) : std::string();
  };
  UseFacts use;
  const std::optional<std::string> text = AskChild(ask, patience, stuck_);
  answered_ = text && UseFromText(*text, use);
  return answered_ ? use : AllInUse(devices, groups);
}

}  // namespace vfio_agent
