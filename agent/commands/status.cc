#include <unistd.h>

#include <iostream>

#include "absl/time/clock.h"
#include "agent/commands/commands.h"
#include "agent/exit_code.h"
#include "agent/listing/tables.h"
#include "agent/listing/watch.h"
#include "agent/outlets/status.h"
#include "deviceplugin/kubelet/server.h"
#include "deviceplugin/status/status_server.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// The daemon answers at once or is in trouble.
constexpr absl::Duration kPatience = absl::Seconds(5);
constexpr absl::Duration kPause = absl::Seconds(1);

absl::StatusOr<AgentStatus> Fetch(const Settings& settings) {
  ASSIGN_OR_RETURN(const std::string socket, SocketPath(settings.state_dir, kStatusSocket));
  return FetchStatus(socket, kPatience);
}

std::string Answer(const AgentStatus& status, const Invocation& invocation) {
  if (IsDocument(invocation.output)) return DocumentText(StatusToJson(status), invocation.output);
  const bool wide = invocation.output == Output::kWide;
  const TableStyle style = {
      .width = wide ? 0 : TableWidth(),
      .spare = SpareColumns(),
      .paint = UsesColour(invocation.colour, STDOUT_FILENO) ? StateStyle : nullptr};
  return StatusToText(status, absl::Now(), wide, style);
}

int WatchStatus(const Settings& settings, const Invocation& invocation) {
  const absl::StatusOr<Tree> tree = Tree::Open(invocation.root);
  if (!tree.ok()) {
    PrintError(Message(tree.status()));
    return kExitFailed;
  }
  return KeepWatching(
      *tree,
      {.form = WatchFormFor(invocation.output), .pause = kPause, .answer = [&]() -> std::string {
         const auto status = Fetch(settings);
         if (!status.ok()) return ForTerminal(Message(status.status()) + "\n");
         return Answer(*status, invocation);
       }});
}

}  // namespace

int StatusCommand(const Invocation& invocation) {
  std::string fault;
  const absl::StatusOr<Settings> settings = SettingsOfDaemon(invocation, fault);
  if (!settings.ok()) {
    PrintError(Message(settings.status()));
    return kExitUsage;
  }
  if (!fault.empty())
    PrintError("a daemon that runs keeps the configuration that it has: " + fault);
  if (invocation.watch) return WatchStatus(*settings, invocation);
  const absl::StatusOr<AgentStatus> status = Fetch(*settings);
  if (!status.ok()) {
    PrintError(Message(status.status()));
    return kExitFailed;
  }
  std::cout << Answer(*status, invocation);
  return kExitDone;
}

}  // namespace vfio_agent
