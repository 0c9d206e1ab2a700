// ModeSwitch: the way from one mode to another, as a transaction: nothing more is given, the
// kubelet has seen that, nobody has anything any more, then devices go back or are bound. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "agent/mode/mode.h"

namespace vfio_agent {

enum class ModeState { kSwitching, kReady, kBlocked };
std::string_view Name(ModeState state);

// All that an agent that comes after this one has to know: everything else is seen of the node.
struct ModeMemory {
  Mode mode = Mode::kPassthrough;  // by which is planned
  // Another mode: on the way to it, and what it has no use for is withheld. The same one: what it
  // needs is being bound, what it does not is being given back. nullopt: all is done.
  std::optional<Mode> target;
  bool operator==(const ModeMemory&) const = default;
};

// The node at one moment, planned for by ModeMemory::mode.
struct ModeView {
  absl::Time now;
  std::optional<Mode> wanted;  // nullopt: not known now, so that nothing may be begun
  std::string why_unknown;
  absl::Time wait_until = absl::InfiniteFuture();  // when `wanted` may be known
  absl::Duration wait_for_holders;                 // as in ModeRule

  // Of a switch whose target has no use for them: whether units are listed, which of those the
  // kubelet counts as healthy still, who has some, and when that was looked at.
  bool listed = false;
  std::vector<std::string> advertised;
  std::vector<std::string> tenants;
  absl::Time looked = absl::InfinitePast();
  bool cut_short = false;  // the last look at the processes did not end

  // Of what goes, or is to be given back: what ResourceSlices may still give to claims.
  std::vector<std::string> sliced;

  // Of the mode in force: groups that are to be given back or to be bound still, who has them, and
  // what does not go on by itself, each a sentence.
  size_t to_release = 0;
  size_t to_bind = 0;
  std::vector<std::string> holders;
  std::vector<std::string> stuck;
};

struct ModeDecision {
  std::optional<Mode> withhold;  // what this mode has no use for is not to be given
  bool write = false;            // what is planned may be begun
  ModeState state = ModeState::kSwitching;
  std::string reason;                        // what it waits for; empty where it is ready
  absl::Time next = absl::InfiniteFuture();  // when to decide again at the latest
  bool operator==(const ModeDecision&) const = default;
};

class ModeSwitch {
 public:
  explicit ModeSwitch(ModeMemory memory) : memory_(memory) {}

  // After it memory() may have another mode: plan by that one next.
  ModeDecision Step(const ModeView& view);

  const ModeMemory& memory() const { return memory_; }
  // The mode that it is in, or on its way to.
  Mode heading() const { return memory_.target.value_or(memory_.mode); }

 private:
  void Head(Mode wanted, absl::Time now);
  ModeDecision Leave(const ModeView& view);
  ModeDecision Arrive(const ModeView& view);
  void Await(const std::vector<std::string>& whom, const ModeView& view, ModeDecision& decision);

  ModeMemory memory_;
  std::optional<absl::Time> withheld_;  // since when
  std::optional<absl::Time> waiting_;   // since when only somebody's use is in the way
};

}  // namespace vfio_agent
