// Watch: an answer again and again, whenever it has changed.
#pragma once

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "agent/session.h"
#include "sysfs/tree.h"

namespace vfio_agent {

struct Watching {
  // How it is shown: a terminal is drawn anew; otherwise lines follow, or whole documents.
  enum class Form { kRedraw, kLines, kJson, kYaml };
  Form form = Form::kLines;
  absl::Duration pause;
  std::function<std::string()> answer;  // what is wrong as text too: watching goes on
};

// The form for what standard output is.
Watching::Form WatchFormFor(Output output);

// Until SIGINT, SIGTERM or SIGHUP; returns the exit code. Looks anew when the kernel tells of a
// device or /dev/vfio changes, as the daemon does, and at the latest after the pause: what pods
// have, and what another root than the host's holds, nobody tells.
int KeepWatching(const Tree& tree, const Watching& row);

}  // namespace vfio_agent
