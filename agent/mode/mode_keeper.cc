#include "agent/mode/mode_keeper.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "sysfs/proc_text.h"

namespace vfio_agent {
namespace {

// Of a label, by Kubernetes.
constexpr size_t kLongestValue = 63;

}  // namespace

absl::Status ModeKeeper::Open() {
  const ModeRule& rule = wish_.rule();
  // Without a label the configuration's mode is in force as it stands; with one, all has to be
  // found as that wants it first.
  ModeMemory memory{.mode = rule.mode};
  if (!rule.label.empty()) memory.target = rule.mode;
  const absl::StatusOr<std::optional<ModeMemory>> last = file_.Read();
  has_file_ = !last.ok() || *last;
  if (last.ok() && *last) {
    kept_ = **last;
    memory = **last;
  }
  switch_ = ModeSwitch(memory);
  // A fixed mode that is in force already is no news.
  if (rule.label.empty() && memory == ModeMemory{.mode = rule.mode}) {
    decision_ = {.write = true, .state = ModeState::kReady};
  }
  return last.status();
}

bool ModeKeeper::Step(const ModeWish::Answer& answer, ModeView view) {
  view.wanted = answer.mode;
  view.why_unknown = answer.why_unknown;
  view.wait_until = answer.due;
  view.wait_for_holders = wish_.rule().wait_for_holders;
  known_ = answer.mode.has_value();
  const Mode before = switch_.heading();
  ModeDecision decision = switch_.Step(view);
  const bool news = decision.state != decision_.state || decision.reason != decision_.reason ||
                    before != switch_.heading();
  decision_ = std::move(decision);
  return news;
}

std::optional<std::string> ModeKeeper::TakeInvalid() {
  std::string invalid = wish_.Invalid();
  if (invalid == invalid_told_) return std::nullopt;
  invalid_told_ = std::move(invalid);
  return invalid_told_.empty() ? std::nullopt : std::optional(invalid_told_);
}

absl::Status ModeKeeper::Keep() {
  if (!has_file_ && label().empty()) return absl::OkStatus();
  if (kept_ == memory()) return absl::OkStatus();
  const absl::Status status = file_.Write(memory());
  if (!status.ok()) return status;
  kept_ = memory();
  has_file_ = true;
  return status;
}

// Also of a mode that is ready: a label that is misspelt looks like one that asks for the default.
std::string ModeKeeper::Reason() const {
  const std::string invalid = wish_.Invalid();
  if (invalid.empty()) return decision_.reason;
  const std::string amiss = absl::StrFormat("label %s=%s is no mode; the default is used", label(),
                                            Printable(invalid, kLongestValue));
  return decision_.reason.empty() ? amiss : decision_.reason + "; " + amiss;
}

ModeStatus ModeKeeper::Status() const {
  return {.mode = std::string(Name(memory().mode)),
          .target = std::string(Name(heading())),
          .state = std::string(Name(decision_.state)),
          .reason = Reason(),
          .label = label(),
          .unread = wish_.unread()};
}

}  // namespace vfio_agent
