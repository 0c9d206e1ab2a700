// Soak: a simulated node with a real daemon and the fake kubelet, the random steps that are taken
// on it, and the rules that hold after each of them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "test/agent/node.h"

namespace vfio_agent {

inline constexpr char kSoakResource[] = "nvidia.com/SOAK";
inline constexpr absl::Duration kSoakPatience = absl::Seconds(60);

// One group of the node, and who holds it by the test's doing.
struct SoakGroup {
  int number = 0;
  std::string unit;                         // the kubelet's id
  std::map<std::string, std::string> home;  // its endpoints, and their host drivers
  bool process = false;
  bool pod = false;
  // How many writes there had been when the hold began to count; see Soak::CountHolds().
  std::optional<size_t> held_since;

  bool HeldByTest() const { return process || pod; }
};

// The random numbers of one step: always as many, so that a seed gives the same wishes whatever
// the node answers.
struct Draw {
  unsigned group = 0;
  unsigned member = 0;
  unsigned variant = 0;
};

class Soak {
 public:
  explicit Soak(unsigned seed);

  // Takes one step at random, then checks every rule. Fails the test case where one is broken.
  void Step();
  // Ends all holds and faults, brings every device back, and waits until all units are healthy.
  void Settle();
  // Ends the daemon and gives everything back by `release`: the node is as it was.
  void GiveBack();

  // The rules were put to the test: groups were held, units were healthy.
  void CheckWasReal() const {
    CHECK(held_checked_ > 0);
    CHECK(advertised_checked_ > 0);
  }
  std::string Summary() const;
  // The steps so far and the end of the daemon's log, for a failure's message.
  std::string Story() const;

 private:
  struct Action;
  static const std::vector<Action>& Actions();

  // Each says what it did; "" where there was nothing to do it to. soak_steps.cc
  std::string Hold(Draw draw);
  std::string Free(Draw draw);
  std::string StartPod(Draw draw);
  std::string EndPod(Draw draw);
  std::string Allocate(Draw draw);
  std::string Rebind(Draw draw);
  std::string Unplug(Draw draw);
  std::string Plug(Draw draw);
  std::string AddFault(Draw draw);
  std::string AddBlock(Draw draw);
  std::string ReleaseBlocked(Draw draw);
  std::string ClearFaults(Draw draw);
  std::string RestartKubelet(Draw draw);
  std::string SilenceKubelet(Draw draw);
  std::string WakeKubelet(Draw draw);
  std::string Reload(Draw draw);
  std::string KillDaemon(Draw draw);
  std::string RestartDaemon(Draw draw);
  std::string ReleaseBeside(Draw draw);
  std::string BindBeside(Draw draw);
  std::string SpoilJournal(Draw draw);

  // The rules. soak_rules.cc
  void CountHolds();
  void CheckHeld();
  void CheckAdvertised();
  void CheckOwners();
  void CheckFootprint();
  std::string StrayUnit() const;
  bool MayStayWithoutDriver(const SoakGroup& group) const;

  // The node. soak.cc
  void StartDaemon();
  void Tell(int signal) const;
  void UseConfig(bool all);
  ProgramResult RunBeside(const std::string& command, const SoakGroup& group) const;
  SoakGroup* Choose(unsigned number, bool (Soak::*fits)(const SoakGroup&) const);
  bool IsPresent(const std::string& address) const;
  bool IsWhole(const SoakGroup& group) const;    // all members on the bus
  bool IsViable(const SoakGroup& group) const;   // the unit is there, all members are on vfio-pci
  bool IsSettled(const SoakGroup& group) const;  // viable, advertised, and nobody at work on it
  bool IsFreeToHold(const SoakGroup& group) const { return !group.process && IsSettled(group); }
  bool IsFreeToGive(const SoakGroup& group) const { return !group.pod && IsSettled(group); }
  bool HasProcess(const SoakGroup& group) const { return group.process; }
  bool HasPod(const SoakGroup& group) const { return group.pod; }
  bool IsFreeToGo(const SoakGroup& group) const { return !group.process && IsWhole(group); }
  std::vector<std::string> Writes() const;
  // Driver, override and d3cold_allowed of every device.
  std::map<std::string, std::string> State() const;
  // What the journal says of the spoilt ones that were taken again.
  std::map<std::string, std::string> RecordedDrivers() const;

  std::mt19937 random_;
  Node node_{"mixed-8gpu"};
  std::vector<SoakGroup> groups_;
  std::map<std::string, std::string> first_state_;
  std::unique_ptr<FakeKubelet> kubelet_;
  std::unique_ptr<Daemon> daemon_;
  bool kubelet_silent_ = false;
  bool all_configured_ = true;
  std::set<std::string> spoilt_;  // devices whose journal the test destroyed

  std::vector<std::string> story_;
  std::map<std::string, int> counts_;  // steps that did something, by kind
  int idle_ = 0;                       // steps that found nothing to do
  int held_checked_ = 0;               // a group that was held had no write
  int held_in_transition_ = 0;
  int advertised_checked_ = 0;  // healthy units looked at
  absl::Duration longest_stray_;
  std::map<std::string, absl::Time> without_driver_;
  absl::Duration longest_without_driver_;
  long first_fds_ = 0, most_fds_ = 0, first_kb_ = 0, most_kb_ = 0;
};

}  // namespace vfio_agent
