// The log lines of what happens between us and the kubelet.
#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/daemon/report.h"

namespace vfio_agent {
namespace {

std::string_view KindName(PluginEvent::Kind kind) {
  switch (kind) {
    case PluginEvent::Kind::kRegistered:
      return "registered";
    case PluginEvent::Kind::kRegisterFailed:
      return "register_failed";
    case PluginEvent::Kind::kKubeletRestarted:
      return "kubelet_restarted";
    case PluginEvent::Kind::kListOpened:
      return "list_opened";
    case PluginEvent::Kind::kListClosed:
      return "list_closed";
    case PluginEvent::Kind::kAllocated:
      return "allocated";
    case PluginEvent::Kind::kAllocateRefused:
      return "allocate_refused";
    case PluginEvent::Kind::kPreStartRefused:
      return "prestart_refused";
    case PluginEvent::Kind::kDirectoryReplaced:
      return "directory_replaced";
    case PluginEvent::Kind::kPeerRefused:
      return "peer_refused";
    case PluginEvent::Kind::kContended:
      return "register_contended";
    case PluginEvent::Kind::kContentionOver:
      return "contention_over";
    case PluginEvent::Kind::kStaleSockets:
      return "stale_sockets";
  }
  return "";
}

Level LevelOf(PluginEvent::Kind kind) {
  switch (kind) {
    case PluginEvent::Kind::kRegisterFailed:
    case PluginEvent::Kind::kListClosed:
    case PluginEvent::Kind::kAllocateRefused:
    case PluginEvent::Kind::kPreStartRefused:
    case PluginEvent::Kind::kPeerRefused:
    case PluginEvent::Kind::kContended:
      return Level::kWarn;
    case PluginEvent::Kind::kDirectoryReplaced:
      return Level::kError;
    default:
      return Level::kInfo;
  }
}

constexpr char kDirectoryRemedy[] =
    "see that the kubelet's directory is there and that the agent may write to it; another one is "
    "named by --device-plugin-dir, with --registration registry by --kubelet-root-dir";

// Where no socket could be made for the kubelet to call: the directory is what to mend.
bool IsAboutDirectory(const PluginEvent& seen) {
  constexpr std::array<std::string_view, 4> kErrors = {
      "No such file or directory", "Not a directory", "Permission denied", "Read-only file system"};
  return seen.kind == PluginEvent::Kind::kRegisterFailed && seen.text.starts_with("listen on ") &&
         std::ranges::any_of(kErrors, [&](std::string_view e) { return seen.text.ends_with(e); });
}

std::string RemedyOf(const PluginEvent& seen) {
  if (!seen.remedy.empty()) return seen.remedy;
  if (IsAboutDirectory(seen)) return kDirectoryRemedy;
  return RemedyIn(seen.text, seen.ids.empty() ? "" : seen.ids.front());
}

}  // namespace

Event PluginSeen(const PluginEvent& seen) {
  Event event{.level = LevelOf(seen.kind), .name = std::string(KindName(seen.kind))};
  if (seen.kind == PluginEvent::Kind::kContended) {
    event.With("code", std::string(CodeName(Code::kForeignManager)));
  }
  event.With("resource", seen.resource).With("ids", absl::StrJoin(seen.ids, ","));
  if (!seen.text.empty()) {
    event.With(event.level == Level::kInfo ? "text" : "err", seen.text);
  }
  event.With("remedy", RemedyOf(seen));
  if (seen.took > absl::ZeroDuration()) {
    event.With("took_us", absl::StrFormat("%d", absl::ToInt64Microseconds(seen.took)));
  }
  return event;
}

}  // namespace vfio_agent
