// What tests of Registration tell: what happens when, and what is then to be done.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "catch2/catch.hpp"
#include "deviceplugin/kubelet/registration.h"

namespace vfio_agent {

using Event = Registration::Event;
using Phase = Registration::Phase;

inline absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

// "serve", "register", "wait" or "wait until 12.5".
inline std::string Print(const Registration::Step& step) {
  if (step.kind == Registration::Step::Kind::kServe) return "serve";
  if (step.kind == Registration::Step::Kind::kRegister) return "register";
  if (step.kind == Registration::Step::Kind::kWithdraw) return "withdraw";
  if (step.until == absl::InfiniteFuture()) return "wait";
  return absl::StrFormat("wait until %g", absl::ToDoubleSeconds(step.until - absl::UnixEpoch()));
}

// One line of a story: at this time this happened, and then this is to be done.
struct Line {
  double at;
  std::optional<Event> event;  // nullopt: only time has passed
  std::string then;
};

inline void Tell(Registration& registration, const std::vector<Line>& story) {
  for (const Line& line : story) {
    CAPTURE(line.at, line.then);
    if (line.event) registration.On(*line.event, At(line.at), 0);
    CHECK(Print(registration.Next(At(line.at))) == line.then);
  }
}

}  // namespace vfio_agent
