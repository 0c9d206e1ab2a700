#include "agent/mode/mode_switch.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/mode/mode_words.h"

namespace vfio_agent {
namespace {

constexpr size_t kMostNamed = 4;

// "a, b, c, d and 3 more".
std::string Listed(const std::vector<std::string>& all) {
  const size_t named = std::min(all.size(), kMostNamed);
  const std::string text = absl::StrJoin(all.begin(), all.begin() + static_cast<long>(named), ", ");
  if (named == all.size()) return text;
  return absl::StrFormat("%s and %d more", text, all.size() - named);
}

void AddSliced(const ModeView& view, std::vector<std::string>& whom) {
  if (view.sliced.empty()) return;
  whom.push_back("the API server, whose ResourceSlices may still give " + Listed(view.sliced));
}

// Nobody is to have what goes, and the kubelet is to give none of it.
std::vector<std::string> WhoKeepsUnits(const ModeView& view) {
  if (!view.listed) return {};
  std::vector<std::string> whom = view.tenants;
  if (!view.advertised.empty()) {
    whom.push_back("the kubelet, which still counts " + Listed(view.advertised));
  }
  AddSliced(view, whom);
  return whom;
}

}  // namespace

std::string_view Name(ModeState state) {
  switch (state) {
    case ModeState::kSwitching:
      return "switching";
    case ModeState::kReady:
      return "ready";
    case ModeState::kBlocked:
      return "blocked";
  }
  return "";
}

// The way back from half-way is the same as any other: it is ready when all is as it is to be.
void ModeSwitch::Head(Mode wanted, absl::Time now) {
  if (wanted == heading()) return;
  memory_.target = wanted;
  withheld_ = now;
  waiting_.reset();
}

void ModeSwitch::Await(const std::vector<std::string>& whom, const ModeView& view,
                       ModeDecision& decision) {
  if (!waiting_) waiting_ = view.now;
  decision.reason = std::string(kWaitsFor) + Listed(whom);
  if (view.wait_for_holders == absl::ZeroDuration()) return;
  const absl::Time end = *waiting_ + view.wait_for_holders;
  if (view.now >= end) {
    decision.state = ModeState::kBlocked;
  } else {
    decision.next = end;
  }
}

ModeDecision ModeSwitch::Step(const ModeView& view) {
  if (view.wanted) Head(*view.wanted, view.now);
  ModeDecision decision = heading() != memory_.mode ? Leave(view) : Arrive(view);
  if (!view.wanted) decision.next = std::min(decision.next, view.wait_until);
  return decision;
}

// Still planned by the old mode, of which nothing new is begun.
ModeDecision ModeSwitch::Leave(const ModeView& view) {
  ModeDecision decision{.withhold = memory_.target};
  if (!withheld_) withheld_ = view.now;
  if (!view.wanted) {
    decision.reason = view.why_unknown;
  } else if (view.listed && view.looked <= *withheld_) {
    decision.reason = "the kubelet is told that no unit is to be given any more";
    if (view.cut_short) Await({"processes: looking at them does not return"}, view, decision);
  } else if (const std::vector<std::string> whom = WhoKeepsUnits(view); !whom.empty()) {
    Await(whom, view, decision);
  } else {
    memory_.mode = *memory_.target;
    waiting_.reset();
    decision.reason = "nothing is held any more";
  }
  return decision;
}

ModeDecision ModeSwitch::Arrive(const ModeView& view) {
  ModeDecision decision{.write = view.wanted.has_value()};
  std::vector<std::string> holders = view.holders;
  AddSliced(view, holders);
  withheld_.reset();
  if (!view.wanted) {
    decision.reason = view.why_unknown;
    return decision;
  }
  if (view.to_release > 0) memory_.target = memory_.mode;
  if (!memory_.target) {
    decision.state = ModeState::kReady;
  } else if (!view.stuck.empty()) {
    decision.state = ModeState::kBlocked;
    decision.reason = Listed(view.stuck);
  } else if (!holders.empty()) {
    Await(holders, view, decision);
  } else if (view.to_release > 0) {
    decision.reason = "devices are being given back";
  } else if (view.to_bind > 0) {
    decision.reason = "devices are being bound";
  } else {
    memory_.target.reset();
    decision.state = ModeState::kReady;
  }
  if (holders.empty()) waiting_.reset();
  return decision;
}

}  // namespace vfio_agent
