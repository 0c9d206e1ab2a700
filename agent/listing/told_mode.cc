#include "agent/listing/told_mode.h"

#include "agent/live.h"
#include "agent/mode/mode_file.h"
#include "agent/mode/mode_words.h"
#include "agent/outlets/status.h"
#include "deviceplugin/kubelet/server.h"
#include "deviceplugin/status/status_server.h"
#include "sysfs/proc_text.h"

namespace vfio_agent {
namespace {

// A list goes without it rather than to wait: what it says beside that is of its own.
constexpr absl::Duration kPatience = absl::Seconds(1);
constexpr size_t kLongestReason = 512;

std::optional<ModeStatus> AskDaemon(const Settings& settings) {
  const auto socket = SocketPath(settings.state_dir, kStatusSocket);
  if (!socket.ok()) return std::nullopt;
  const absl::StatusOr<AgentStatus> status = FetchStatus(*socket, kPatience);
  if (!status.ok() || !FindMode(status->mode.mode)) return std::nullopt;
  return status->mode;
}

}  // namespace

std::optional<ModeStatus> ReadToldMode(const Session& session) {
  if (!IsStateDirLive(session)) return std::nullopt;
  if (std::optional<ModeStatus> told = AskDaemon(session.settings())) return told;
  if (session.config().mode.label.empty()) return std::nullopt;
  const auto last = ModeFile(session.settings().state_dir).Read();
  if (!last.ok() || !*last) return std::nullopt;
  const ModeMemory& memory = **last;
  return ModeStatus{.mode = std::string(Name(memory.mode)),
                    .target = std::string(Name(memory.target.value_or(memory.mode)))};
}

void UseToldMode(const std::optional<ModeStatus>& told, Session& session) {
  if (!told) return;
  if (const std::optional<Mode> mode = FindMode(told->mode)) session.UseMode(*mode);
}

void WithholdAsTold(const std::optional<ModeStatus>& told, const ModeRule& rule, Plan& plan) {
  if (!told || told->mode == told->target) return;
  const std::optional<Mode> target = FindMode(told->target);
  if (!target) return;
  Withhold(*target, UseIn(*target, rule), plan);
  if (told->reason.empty()) return;
  for (Resource& resource : plan.resources) {
    for (Unit& unit : resource.units) {
      if (!unit.reason.starts_with(kWithheldByMode)) continue;
      unit.reason += ": " + Printable(told->reason, kLongestReason);
    }
  }
}

}  // namespace vfio_agent
