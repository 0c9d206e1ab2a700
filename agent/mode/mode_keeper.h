// ModeKeeper: which mode is wanted, which is in force and what of that stands on disk, for the
// daemon's loop. One thread.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agent/mode/mode_file.h"
#include "agent/mode/mode_switch.h"
#include "agent/mode/mode_wish.h"
#include "deviceplugin/status/agent_status.h"

namespace vfio_agent {

class ModeKeeper {
 public:
  ModeKeeper(const std::string& state_dir, const ModeRule& rule)
      : file_(state_dir), wish_(rule), switch_({.mode = rule.mode}) {}

  // Takes up where the agent before this one was. What kept it from that: nothing is lost then but
  // that the configuration alone decides.
  absl::Status Open();

  void SetRule(const ModeRule& rule, absl::Time now) { wish_.SetRule(rule, now); }
  bool SetLabels(const NodeLabels& labels, absl::Time now) { return wish_.SetLabels(labels, now); }

  // Before a view is made: what is wanted at `now`. Where nothing is, nothing needs to be planned.
  ModeWish::Answer Ask(absl::Time now) { return wish_.Ask(switch_.heading(), now); }
  // Fills in what was asked for, and decides. True where the decision says something new.
  bool Step(const ModeWish::Answer& answer, ModeView view);

  const ModeDecision& decision() const { return decision_; }
  const ModeMemory& memory() const { return switch_.memory(); }
  Mode heading() const { return switch_.heading(); }
  // True while a switch is on that may go on.
  bool waits() const { return memory().target.has_value() && known_; }
  ModeUse Use(Mode mode) const { return UseIn(mode, wish_.rule()); }
  const std::string& label() const { return wish_.rule().label; }
  // A value of the label that is none, once.
  std::optional<std::string> TakeInvalid();

  // Puts on disk what is not there yet. A mode that was never a label's matter leaves no file.
  absl::Status Keep();

  ModeStatus Status() const;

 private:
  std::string Reason() const;

  ModeFile file_;
  ModeWish wish_;
  ModeSwitch switch_;
  ModeDecision decision_;
  bool known_ = false;              // what is wanted, at the last step
  bool has_file_ = false;           // one was found, or has been written
  std::optional<ModeMemory> kept_;  // on disk, as far as known
  std::string invalid_told_;
};

}  // namespace vfio_agent
