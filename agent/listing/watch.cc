#include "agent/listing/watch.h"

#include <unistd.h>

#include <iostream>
#include <limits>

#include "absl/time/clock.h"
#include "agent/commands/commands.h"
#include "agent/daemon/loop.h"
#include "agent/daemon/signals.h"
#include "agent/exit_code.h"
#include "agent/listing/changes.h"
#include "agent/listing/screen.h"
#include "agent/text/terminal.h"
#include "sysfs/clock.h"
#include "sysfs/node_watch.h"
#include "sysfs/status.h"
#include "sysfs/uevents.h"

namespace vfio_agent {
namespace {

std::string TimeOfDay() { return absl::FormatTime("%H:%M:%S", absl::Now(), absl::LocalTimeZone()); }

// Over what stands there, so that nothing flickers. Three rows are for the head, for the count of
// what does not fit, and for the cursor.
void Redraw(const std::string& text) {
  const size_t height = TerminalHeight(STDOUT_FILENO);
  const size_t rows = height > 4 ? height - 3 : std::numeric_limits<size_t>::max();
  std::cout << "\x1b[Hlast change " << TimeOfDay() << ", Ctrl-C ends\x1b[K\n"
            << ScreenText(text, TerminalWidth(STDOUT_FILENO), rows) << "\x1b[J";
}

void Show(Watching::Form form, const std::string& before, const std::string& now) {
  if (form == Watching::Form::kRedraw) {
    Redraw(now);
  } else if (form == Watching::Form::kYaml) {
    std::cout << "---\n" << now;  // the mark between documents
  } else if (form == Watching::Form::kJson || before.empty()) {
    std::cout << now;
  } else if (const std::string changes = ChangedLines(before, now); !changes.empty()) {
    std::cout << TimeOfDay() << "\n" << changes;
  }
  std::cout.flush();
}

}  // namespace

Watching::Form WatchFormFor(Output output) {
  if (output == Output::kJson) return Watching::Form::kJson;
  if (output == Output::kYaml) return Watching::Form::kYaml;
  return IsTerminal(STDOUT_FILENO) ? Watching::Form::kRedraw : Watching::Form::kLines;
}

int KeepWatching(const Tree& tree, const Watching& watching) {
  Signals signals;
  Loop loop;
  for (const absl::Status& status : {signals.Install(), loop.Open()}) {
    if (status.ok()) continue;
    PrintError(Message(status));
    return kExitFailed;
  }
  absl::StatusOr<Uevents> uevents = Uevents::Open();  // where there are none, the pause is all
  NodeWatch nodes(tree);
  loop.Watch(signals.fd(), [&] {
    signals.Take();
    loop.Stop();
  });
  if (uevents.ok()) loop.Watch(uevents->fd(), [&] { uevents->Drain(); });
  loop.Watch(nodes.fd(), [&] { nodes.Drain(); });
  std::string shown;
  loop.Run([&] { return MonotonicNow() + watching.pause; },
           [&] {
             const std::string text = watching.answer();
             if (text != shown) Show(watching.form, shown, text);
             shown = text;
             if (!std::cout) loop.Stop();  // nobody reads any more: main() tells
           });
  return kExitDone;
}

}  // namespace vfio_agent
