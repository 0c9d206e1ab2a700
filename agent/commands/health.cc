#include "agent/commands/health.h"

#include <iostream>

#include "agent/commands.h"
#include "agent/exit_code.h"
#include "agent/outlets/status.h"
#include "deviceplugin/server.h"
#include "deviceplugin/status_server.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// The daemon answers at once or is in trouble.
constexpr absl::Duration kPatience = absl::Seconds(5);

absl::StatusOr<Settings> SettingsOf(const Invocation& invocation) {
  if (const auto config = ReadConfig(invocation.config_file); config.ok()) {
    auto settings = MakeSettings(
        {.flags = invocation.flags, .file = config->settings, .file_name = config->file_name});
    if (settings.ok()) return settings;
  }
  // A daemon keeps the configuration that it has while the file is broken. A probe that failed for
  // that would have it killed, and the next one could not start. The manifests name stateDir in the
  // environment, so that there the file's does not count either.
  return MakeSettings({.flags = invocation.flags, .file = {}, .file_name = {}});
}

}  // namespace

int HealthCommand(const Invocation& invocation) {
  const absl::StatusOr<Settings> settings = SettingsOf(invocation);
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
