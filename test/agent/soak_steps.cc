// The steps: what happens to a node, its kubelet and its agent in the field, each at random.
#include <array>
#include <csignal>
#include <fstream>

#include "absl/strings/str_format.h"
#include "test/agent/soak.h"

namespace vfio_agent {
namespace {

// SIGTERM has two seconds; the rest is what a busy machine adds.
constexpr absl::Duration kEnd = absl::Seconds(5);
// What drifted a moment ago is healed in this time, unless a fault is in the way.
constexpr absl::Duration kHealed = absl::Milliseconds(500);
constexpr int kMostUnplugged = 3;

constexpr std::array<const char*, 10> kFaults = {
    "op: unbind, errno: EBUSY",        "op: unbind, errno: EIO",
    "op: unbind, delay: 200ms",        "op: unbind, vanish: true",
    "op: override, errno: EINVAL",     "op: drivers_probe, errno: EINVAL",
    "op: probe, errno: EINVAL",        "op: probe, errno: EBUSY",
    "op: drivers_probe, delay: 200ms", "op: \"read:driver_override\", delay: 200ms"};
constexpr std::array<const char*, 4> kBlocks = {
    "op: unbind, block: forever", "op: unbind, block: forever, unkillable: true",
    "op: override, block: forever", "op: drivers_probe, block: forever, unkillable: true"};

// The address of one of the group's members.
const std::string& MemberOf(const SoakGroup& group, unsigned number) {
  return std::next(group.home.begin(), static_cast<ptrdiff_t>(number % group.home.size()))->first;
}

std::string PodOf(const SoakGroup& group) { return absl::StrFormat("vm-%d", group.number); }

}  // namespace

struct Soak::Action {
  const char* name;
  unsigned weight;
  std::string (Soak::*act)(Draw);
};

const std::vector<Soak::Action>& Soak::Actions() {
  static const std::vector<Action> actions = {
      {"hold", 8, &Soak::Hold},
      {"free", 5, &Soak::Free},
      {"pod", 8, &Soak::StartPod},
      {"pod-end", 5, &Soak::EndPod},
      {"allocate", 8, &Soak::Allocate},
      {"rebind", 12, &Soak::Rebind},
      {"unplug", 6, &Soak::Unplug},
      {"plug", 9, &Soak::Plug},
      {"fault", 10, &Soak::AddFault},
      {"block", 2, &Soak::AddBlock},
      {"release-blocked", 5, &Soak::ReleaseBlocked},
      {"clear-faults", 4, &Soak::ClearFaults},
      {"kubelet-restart", 3, &Soak::RestartKubelet},
      {"kubelet-silent", 2, &Soak::SilenceKubelet},
      {"kubelet-awake", 5, &Soak::WakeKubelet},
      {"reload", 5, &Soak::Reload},
      {"kill", 2, &Soak::KillDaemon},
      {"restart", 2, &Soak::RestartDaemon},
      {"release", 5, &Soak::ReleaseBeside},
      {"bind", 4, &Soak::BindBeside},
      {"spoil-journal", 2, &Soak::SpoilJournal},
  };
  return actions;
}

void Soak::Step() {
  unsigned sum = 0;
  for (const Action& action : Actions()) sum += action.weight;
  unsigned choice = static_cast<unsigned>(random_()) % sum;
  const Draw draw{.group = static_cast<unsigned>(random_()),
                  .member = static_cast<unsigned>(random_()),
                  .variant = static_cast<unsigned>(random_())};
  size_t i = 0;
  for (; choice >= Actions()[i].weight; ++i) choice -= Actions()[i].weight;
  const Action& action = Actions()[i];
  const std::string done = (this->*action.act)(draw);
  story_.push_back(absl::StrFormat("%d %s %s", story_.size() + 1, action.name,
                                   done.empty() ? "(nothing to do)" : done));
  ++(done.empty() ? idle_ : counts_[action.name]);
  CountHolds();
  CheckHeld();
  CheckAdvertised();
  CheckOwners();
  CheckFootprint();
}

std::string Soak::Hold(Draw draw) {
  SoakGroup* group = nullptr;
  Eventually([&] { return (group = Choose(draw.group, &Soak::IsFreeToHold)) != nullptr; }, kHealed);
  if (group == nullptr) return "";
  constexpr int kFirstPid = 5000;
  node_.Control(absl::StrFormat("hold %d %d qemu-kvm", group->number, kFirstPid + group->number));
  group->process = true;
  return absl::StrFormat("group %d", group->number);
}

std::string Soak::Free(Draw draw) {
  SoakGroup* const group = Choose(draw.group, &Soak::HasProcess);
  if (group == nullptr) return "";
  CheckHeld();
  node_.Control(absl::StrFormat("free %d", group->number));
  group->process = false;
  return absl::StrFormat("group %d", group->number);
}

std::string Soak::StartPod(Draw draw) {
  SoakGroup* group = nullptr;
  Eventually([&] { return (group = Choose(draw.group, &Soak::IsFreeToGive)) != nullptr; }, kHealed);
  if (group == nullptr) return "";
  kubelet_->SetPod("default", PodOf(*group), "compute", kSoakResource, {group->unit});
  group->pod = true;
  return absl::StrFormat("group %d", group->number);
}

std::string Soak::EndPod(Draw draw) {
  SoakGroup* const group = Choose(draw.group, &Soak::HasPod);
  if (group == nullptr) return "";
  CheckHeld();
  CHECK(kubelet_->RemovePod("default", PodOf(*group)));
  group->pod = false;
  return absl::StrFormat("group %d", group->number);
}

// Also of units that are not well: those must be refused.
std::string Soak::Allocate(Draw draw) {
  const SoakGroup& group = groups_[draw.group % groups_.size()];
  const auto answer = kubelet_->Allocate(kSoakResource, {group.unit});
  if (answer.ok() && !IsViable(group)) {
    INFO(Story());
    FAIL(group.unit << " was allocated, and its group is not on vfio-pci");
  }
  return group.unit + (answer.ok() ? " given" : " refused");
}

std::string Soak::Rebind(Draw draw) {
  SoakGroup* const group = Choose(draw.group, &Soak::IsViable);
  if (group == nullptr) return "";
  const std::string& member = MemberOf(*group, draw.member);
  if (!IsPresent(member)) return "";
  node_.Control("rebind " + member + " " + group->home.at(member));
  return member;
}

// Not what a process has open: the kernel waits for its end before a vfio device goes.
std::string Soak::Unplug(Draw draw) {
  const auto unplugged =
      std::ranges::count_if(groups_, [this](const SoakGroup& group) { return !IsWhole(group); });
  SoakGroup* const group = Choose(draw.group, &Soak::IsFreeToGo);
  if (group == nullptr || unplugged >= kMostUnplugged) return "";
  const std::string& member = MemberOf(*group, draw.member);
  node_.Control("remove " + member);
  return member;
}

std::string Soak::Plug(Draw draw) {
  for (size_t i = 0; i < groups_.size(); ++i) {
    for (const auto& entry : groups_[(draw.group + i) % groups_.size()].home) {
      if (IsPresent(entry.first)) continue;
      node_.Control("add " + entry.first);
      return entry.first;
    }
  }
  return "";
}

std::string Soak::AddFault(Draw draw) {
  const std::string& member = MemberOf(groups_[draw.group % groups_.size()], draw.member);
  const std::string fault = absl::StrFormat("{device: \"%s\", %s, once: true}", member,
                                            kFaults[draw.variant % kFaults.size()]);
  node_.Control("fault " + fault);
  return fault;
}

std::string Soak::AddBlock(Draw draw) {
  const std::string& member = MemberOf(groups_[draw.group % groups_.size()], draw.member);
  const std::string fault = absl::StrFormat("{device: \"%s\", %s, once: true}", member,
                                            kBlocks[draw.variant % kBlocks.size()]);
  node_.Control("fault " + fault);
  return fault;
}

std::string Soak::ReleaseBlocked(Draw draw) {
  const SoakGroup& group = groups_[draw.group % groups_.size()];
  for (const auto& entry : group.home) node_.Control("release-blocked " + entry.first);
  return absl::StrFormat("group %d", group.number);
}

std::string Soak::ClearFaults(Draw) {
  node_.Control("clear-faults");
  return "all";
}

std::string Soak::RestartKubelet(Draw draw) {
  const bool killed = draw.variant % 2 == 0;
  kubelet_->Stop(killed);
  REQUIRE(kubelet_->Start().ok());
  return killed ? "killed" : "stopped";
}

std::string Soak::SilenceKubelet(Draw) {
  kubelet_->SilencePodResources(true);
  kubelet_silent_ = true;
  return "PodResources";
}

std::string Soak::WakeKubelet(Draw) {
  if (!kubelet_silent_) return "";
  kubelet_->SilencePodResources(false);
  kubelet_silent_ = false;
  return "PodResources";
}

std::string Soak::Reload(Draw) {
  UseConfig(!all_configured_);
  Tell(SIGHUP);
  return all_configured_ ? "all" : "without two";
}

std::string Soak::KillDaemon(Draw) {
  daemon_->Signal(SIGKILL);
  REQUIRE(daemon_->WaitForEnd(kSoakPatience) == 128 + SIGKILL);
  StartDaemon();
  return "SIGKILL";
}

std::string Soak::RestartDaemon(Draw) {
  Tell(SIGTERM);
  INFO(Story());
  REQUIRE(daemon_->WaitForEnd(kEnd) == 0);
  StartDaemon();
  return "SIGTERM";
}

// Done, failed by a fault, or refused; never by force.
std::string Soak::ReleaseBeside(Draw draw) {
  const SoakGroup* const group = Choose(draw.group, &Soak::IsWhole);
  if (group == nullptr) return "";
  const ProgramResult result = RunBeside("release", *group);
  INFO(result.out << result.err << Story());
  CHECK((result.exit_code == 0 || result.exit_code == 1 || result.exit_code == 3));
  const bool nothing = result.out.find("nothing to release") != std::string::npos;
  if (group->held_since) CHECK((result.exit_code == 3 || nothing));
  return absl::StrFormat("group %d: exit code %d", group->number, result.exit_code);
}

std::string Soak::BindBeside(Draw draw) {
  const SoakGroup* const group = Choose(draw.group, &Soak::IsWhole);
  if (group == nullptr) return "";
  const ProgramResult result = RunBeside("bind", *group);
  INFO(result.out << result.err << Story());
  CHECK((result.exit_code == 0 || result.exit_code == 1 || result.exit_code == 3));
  return absl::StrFormat("group %d: exit code %d", group->number, result.exit_code);
}

// Of a group that is the guests' and that nobody holds: what its record said is lost for good.
std::string Soak::SpoilJournal(Draw draw) {
  SoakGroup* const group = Choose(draw.group, &Soak::IsSettled);
  if (group == nullptr || group->HeldByTest()) return "";
  const std::string& member = MemberOf(*group, draw.member);
  const std::string file = node_.state_dir() + "/devices/" + member + ".json";
  if (!std::filesystem::exists(file)) return "";
  std::ofstream(file) << "{\"schema\": \"vfio-agent/journal/v1\", \"addr";
  for (const auto& entry : group->home) spoilt_.insert(entry.first);
  return member;
}

}  // namespace vfio_agent
