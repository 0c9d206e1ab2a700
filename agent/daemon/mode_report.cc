// The log lines of the mode.
#include "agent/daemon/report.h"
#include "agent/mode/mode_words.h"

namespace vfio_agent {
Event ModeSeen(const ModeStatus& mode) {
  const bool moves = mode.mode != mode.target;
  if (mode.state == "ready") {
    Event event{.name = "mode_ready"};
    return event.With("mode", mode.mode).With("label", mode.label).With("why", mode.reason);
  }
  if (mode.state == "blocked") {
    Event event{.level = Level::kWarn, .name = "mode_blocked"};
    return event.With("mode", mode.target)
        .With("from", moves ? mode.mode : "")
        .With("why", mode.reason)
        .With("next", "goes on by itself as soon as that is over")
        .With("remedy", RemedyForWait(mode));
  }
  Event event{.name = "mode_switching"};
  return event.With("mode", mode.target)
      .With("from", moves ? mode.mode : "")
      .With("why", mode.reason)
      .With("label", mode.label);
}

Event ModeInvalid(const std::string& label, const std::string& value, Mode fallback) {
  Event event{.level = Level::kWarn, .name = "mode_invalid"};
  return event.With("label", label)
      .With("value", value)
      .With("next", std::string(Name(fallback)) + " counts, the configured default")
      .With("remedy",
            "give the label a value of mode.values: container, vm-passthrough or vm-vgpu if the "
            "configuration has no others");
}

}  // namespace vfio_agent
