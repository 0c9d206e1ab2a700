#include "agent/commands/health.h"

#include <iostream>

#include "agent/commands/commands.h"
#include "agent/exit_code.h"
#include "agent/outlets/status.h"
#include "deviceplugin/kubelet/server.h"
#include "deviceplugin/status/status_server.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// The daemon answers at once or is in trouble.
constexpr absl::Duration kPatience = absl::Seconds(5);

absl::StatusOr<Settings> SettingsOfFile(const Invocation& invocation) {
  ASSIGN_OR_RETURN(const Config config, ReadConfig(invocation.config_file));
  return MakeSettings(
      {.flags = invocation.flags, .file = config.settings, .file_name = config.file_name});
}

}  // namespace

absl::StatusOr<Settings> SettingsOfDaemon(const Invocation& invocation, std::string& fault) {
  absl::StatusOr<Settings> settings = SettingsOfFile(invocation);
  if (settings.ok()) return settings;
  fault = Message(settings.status());
  return MakeSettings({.flags = invocation.flags, .file = {}, .file_name = {}});
}

int HealthCommand(const Invocation& invocation) {
  std::string fault;  // a probe that failed for it would have the daemon killed
  const absl::StatusOr<Settings> settings = SettingsOfDaemon(invocation, fault);
  if (!settings.ok()) {
    PrintError(Message(settings.status()));
    return kExitUsage;
  }
  const auto socket = SocketPath(settings->state_dir, kStatusSocket);
  const absl::Status health = socket.ok() ? FetchHealth(*socket, kPatience) : socket.status();
  if (!health.ok()) {
    PrintError(Message(health));
    return kExitFailed;
  }
  std::cout << "ok\n";
  return kExitDone;
}

}  // namespace vfio_agent
