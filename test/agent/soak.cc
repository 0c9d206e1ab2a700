#include "test/agent/soak.h"

#include <csignal>
#include <fstream>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agent/work/group_lock.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

constexpr char kAll[] =
    "resources:\n"
    "- {name: nvidia.com/SOAK, select: [{vendor: \"10de\", class: [\"0300\", \"0302\"]}]}\n";
constexpr char kWithoutTwo[] =
    "resources:\n"
    "- name: nvidia.com/SOAK\n"
    "  select: [{vendor: \"10de\", class: [\"0300\", \"0302\"]}]\n"
    "  exclude: [{address: \"0000:02:00.0\"}, {address: \"0000:43:00.0\"}]\n";

SoakGroup MakeGroup(const nlohmann::json& planned) {
  SoakGroup group{.number = planned.at("group").get<int>()};
  for (const auto& member : planned.at("members")) {
    if (member.at("role") == "bridge") continue;
    const std::string address = member.at("address").get<std::string>();
    if (member.at("role") == "primary") group.unit = address;
    group.home[address] = member.at("driver").get<std::string>();
  }
  return group;
}

ProgramResult RunOn(const Node& node, const std::string& command, const SoakGroup& group,
                    const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {command,
                                    absl::StrFormat("group:%d", group.number),
                                    "--config",
                                    node.dir().path() + "/config.yaml",
                                    "--device-plugin-dir",
                                    node.kubelet_dir(),
                                    "--kubelet-root-dir",
                                    node.kubelet_root()};
  words.insert(words.end(), more.begin(), more.end());
  return node.Run(std::move(words));
}

}  // namespace

Soak::Soak(unsigned seed) : random_(seed) {
  UseConfig(true);
  const std::string config = node_.dir().path() + "/config.yaml";
  const nlohmann::json plan = node_.RunJson({"plan", "--config", config});
  for (const auto& planned : plan.at("groups")) groups_.push_back(MakeGroup(planned));
  REQUIRE(groups_.size() == 8);
  first_state_ = State();
  kubelet_ = node_.StartKubelet();
  StartDaemon();
  REQUIRE(kubelet_->WaitHealthy(kSoakResource, groups_.size(), kSoakPatience));
}

// A daemon cannot know of a pod on a device that left vfio-pci while no daemon ran, where no record
// tells that it was there.
void Soak::StartDaemon() {
  for (SoakGroup& group : groups_) {
    if (spoilt_.contains(group.unit)) group.held_since.reset();
  }
  daemon_ = std::make_unique<Daemon>(
      node_.DaemonArguments({"--config", node_.dir().path() + "/config.yaml", "--resync", "100ms",
                             "--unbind-timeout", "1s"}));
}

// A process that has only just begun has the kernel's answer to a signal: its end.
void Soak::Tell(int signal) const {
  INFO(Story());
  REQUIRE_FALSE(daemon_->WaitForLine({"event=agent_started"}, kSoakPatience).empty());
  daemon_->Signal(signal);
}

// A reader sees the one or the other, never half of it.
void Soak::UseConfig(bool all) {
  const std::string fresh = node_.dir().Write("config.new", all ? kAll : kWithoutTwo);
  fs::rename(fresh, node_.dir().path() + "/config.yaml");
  all_configured_ = all;
}

ProgramResult Soak::RunBeside(const std::string& command, const SoakGroup& group) const {
  return RunOn(node_, command, group, {"--unbind-timeout", "1s"});
}

// The first group from a random one on that fits; null where none does.
SoakGroup* Soak::Choose(unsigned number, bool (Soak::*fits)(const SoakGroup&) const) {
  for (size_t i = 0; i < groups_.size(); ++i) {
    SoakGroup& group = groups_[(number + i) % groups_.size()];
    if ((this->*fits)(group)) return &group;
  }
  return nullptr;
}

bool Soak::IsPresent(const std::string& address) const {
  return fs::exists(node_.root() + "/sys/bus/pci/devices/" + address);
}

bool Soak::IsWhole(const SoakGroup& group) const {
  return std::ranges::all_of(group.home,
                             [this](const auto& entry) { return IsPresent(entry.first); });
}

// As the kernel sees it: a member that was unplugged does not count.
bool Soak::IsViable(const SoakGroup& group) const {
  return IsPresent(group.unit) && std::ranges::all_of(group.home, [this](const auto& entry) {
           return !IsPresent(entry.first) || node_.DriverOf(entry.first) == "vfio-pci";
         });
}

bool Soak::IsSettled(const SoakGroup& group) const {
  const FakeResources resources = kubelet_->Resources();
  const auto resource = resources.find(kSoakResource);
  if (resource == resources.end() || resource->second.stopped) return false;
  const auto unit = resource->second.devices.find(group.unit);
  return unit != resource->second.devices.end() && unit->second.healthy && IsViable(group) &&
         !IsGroupLocked(node_.state_dir(), group.number);
}

std::vector<std::string> Soak::Writes() const {
  return absl::StrSplit(node_.Writes(), '\n', absl::SkipEmpty());
}

std::map<std::string, std::string> Soak::State() const {
  std::map<std::string, std::string> state;
  for (const auto& entry : fs::directory_iterator(node_.root() + "/sys/bus/pci/devices")) {
    const std::string address = entry.path().filename().string();
    std::ifstream file(entry.path() / "d3cold_allowed");
    std::string d3cold;
    std::getline(file, d3cold);
    state[address] = absl::StrFormat("driver '%s', override %s, d3cold_allowed '%s'",
                                     node_.DriverOf(address), node_.OverrideOf(address), d3cold);
  }
  return state;
}

void Soak::Settle() {
  for (SoakGroup& group : groups_) {
    CheckHeld();
    if (group.process) node_.Control(absl::StrFormat("free %d", group.number));
    if (group.pod) CHECK(kubelet_->RemovePod("default", absl::StrFormat("vm-%d", group.number)));
    group.process = group.pod = false;
    group.held_since.reset();
  }
  node_.Control("clear-faults");
  for (const SoakGroup& group : groups_) {
    for (const auto& entry : group.home) {
      node_.Control("release-blocked " + entry.first);
      if (!IsPresent(entry.first)) node_.Control("add " + entry.first);
    }
  }
  kubelet_->SilencePodResources(false);
  UseConfig(true);
  Tell(SIGHUP);  // what waits for its next try has it now
  const bool well = Eventually(
      [this] {
        return std::ranges::all_of(
            groups_, [this](const SoakGroup& group) { return IsWhole(group) && IsSettled(group); });
      },
      kSoakPatience);
  INFO(Story());
  REQUIRE(well);
}

std::map<std::string, std::string> Soak::RecordedDrivers() const {
  std::map<std::string, std::string> drivers;
  for (const std::string& address : spoilt_) {
    std::ifstream file(node_.state_dir() + "/devices/" + address + ".json");
    const auto record = nlohmann::json::parse(file, nullptr, false);
    if (record.is_object()) drivers[address] = record.at("driver");
  }
  return drivers;
}

void Soak::GiveBack() {
  INFO(Story());
  Tell(SIGTERM);
  CHECK(daemon_->WaitForEnd(absl::Seconds(5)) == 0);
  const std::map<std::string, std::string> recorded = RecordedDrivers();
  for (const SoakGroup& group : groups_) {
    // Without the daemon's limit: on a busy machine a write may take a second.
    const ProgramResult result = RunOn(node_, "release", group);
    INFO(result.out << result.err);
    CHECK(result.exit_code == 0);
  }
  const std::map<std::string, std::string> last_state = State();
  for (const auto& [address, state] : first_state_) {
    CAPTURE(address);
    // What its record said of the time before is lost: all that can be asked for is the driver,
    // and where it was taken again, the one that it had then. That may be none: one that comes back
    // to the bus is seen before its driver has looked at it.
    if (spoilt_.contains(address)) {
      for (const SoakGroup& group : groups_) {
        const auto home = group.home.find(address);
        if (home == group.home.end()) continue;
        const auto record = recorded.find(address);
        const std::string driver = record == recorded.end() ? home->second : record->second;
        CHECK((driver.empty() || driver == home->second));
        CHECK(node_.DriverOf(address) == driver);
      }
      continue;
    }
    CHECK(last_state.at(address) == state);
  }
}

std::string Soak::Story() const {
  constexpr size_t kSteps = 40, kLines = 60;
  const auto tail = [](const std::vector<std::string>& lines, size_t most) {
    const auto first =
        lines.size() > most ? lines.end() - static_cast<ptrdiff_t>(most) : lines.begin();
    return absl::StrJoin(first, lines.end(), "\n");
  };
  const std::vector<std::string> log = absl::StrSplit(daemon_->Log(), '\n');
  return absl::StrFormat("the last steps:\n%s\nthe daemon's log:\n%s\nwrites:\n%s\n",
                         tail(story_, kSteps), tail(log, kLines), tail(Writes(), kLines));
}

std::string Soak::Summary() const {
  std::vector<std::string> kinds;
  for (const auto& [name, count] : counts_) kinds.push_back(absl::StrFormat("%s %d", name, count));
  return absl::StrFormat(
      "steps: %s; nothing to do %d\n"
      "held groups checked %d, in transition %d; healthy units checked %d\n"
      "longest: unit stale %s, device without driver %s\n"
      "descriptors %d..%d, resident %d..%d kB\n",
      absl::StrJoin(kinds, ", "), idle_, held_checked_, held_in_transition_, advertised_checked_,
      absl::FormatDuration(longest_stray_), absl::FormatDuration(longest_without_driver_),
      first_fds_, most_fds_, first_kb_, most_kb_);
}

}  // namespace vfio_agent
