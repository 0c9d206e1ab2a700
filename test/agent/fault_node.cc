#include "test/agent/fault_node.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);
constexpr std::array<const char*, 2> kHomeDriver = {"nvidia", "snd_hda_intel"};
constexpr std::array<const char*, 2> kOtherDriver = {"nouveau", "pci-stub"};
constexpr char kVfio[] = "vfio-pci";
constexpr char kNone[] = "(null)";
constexpr std::array<const char*, 3> kHost = {"0000:fa:00.0", "0000:fb:00.0", "0000:fc:00.0"};

std::string MachineOf(int groups) {
  std::string text =
      "host: {iommu_active: true, iommu: intel}\n"
      "devices:\n"
      "- {address: \"0000:fa:00.0\", vendor: \"8086\", device: \"1533\", class: \"0x020000\", "
      "driver: igb, iommu_group: 250}\n"
      "- {address: \"0000:fb:00.0\", vendor: \"144d\", device: \"a808\", class: \"0x010802\", "
      "driver: nvme, iommu_group: 251}\n"
      "- {address: \"0000:fc:00.0\", vendor: \"1002\", device: \"738c\", class: \"0x030000\", "
      "driver: amdgpu, iommu_group: 252}\n";
  for (int group = 1; group <= groups; ++group) {
    text += absl::StrFormat(
        "- {address: \"%s\", vendor: \"10de\", device: \"2330\", class: \"0x030200\", "
        "driver: nvidia, iommu_group: %d}\n"
        "- {address: \"%s\", vendor: \"10de\", device: \"22ba\", class: \"0x040300\", "
        "driver: snd_hda_intel, iommu_group: %d}\n",
        FaultNode::AddressOf(group, 0), group, FaultNode::AddressOf(group, 1), group);
  }
  return text;
}

std::string Line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Both writes to driver_override look alike: the first one is let through.
std::string OpOf(const Cell& cell) { return cell.op == "restore" ? "override" : cell.op; }

std::string EffectOf(const Cell& cell) {
  const std::string other = kOtherDriver.at(static_cast<size_t>(cell.function));
  if (cell.fault.front() == 'E') return "errno: " + cell.fault;
  if (cell.fault == "vanishes") return "vanish: true";
  if (cell.fault == "taken") return "taken_by: " + other;
  if (cell.fault == "in time") return "block: 50ms";
  if (cell.fault == "late") return "block: 5s, unkillable: true";
  if (cell.fault == "hangs") return "block: forever";
  REQUIRE(cell.fault == "stuck");
  return "block: forever, unkillable: true";
}

std::string FaultText(const Cell& cell, int group, const std::string& effect) {
  return absl::StrFormat("fault {device: \"%s\", op: %s, %s}",
                         FaultNode::AddressOf(group, cell.function), OpOf(cell), effect);
}

std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream stat(entry.path() / "stat");
    std::string pid, name, state;
    pid_t ppid = 0;
    if (stat >> pid >> name >> state >> ppid && ppid == parent) children.push_back(std::stoi(pid));
  }
  return children;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const FunctionState& state) {
  if (!state.present) return out << "gone";
  return out << state.driver << "/" << state.driver_override << "/d3cold " << state.d3cold;
}

FaultNode::FaultNode(int groups)
    : node_(Node::MachineText{MachineOf(groups)}), disk_(node_), groups_(groups) {}

std::string FaultNode::AddressOf(int group, int function) {
  return absl::StrFormat("0000:%02x:00.%d", group, function);
}

FunctionState FaultNode::HomeOf(int function) {
  const auto i = static_cast<size_t>(function);
  return {.driver = kHomeDriver.at(i), .driver_override = kNone, .d3cold = "1"};
}

void FaultNode::Inject(const Cell& cell, int group, Often often) const {
  const std::string once = often == Often::kOnce ? ", once: true" : "";
  if (cell.op == "node") {  // comes with neither of the two
    for (const int function : {0, 1}) {
      node_.Control(FaultText({.function = function, .op = "node"}, group, "once: true"));
    }
    return;
  }
  if (cell.op == "restore") node_.Control(FaultText(cell, group, "once: true"));
  node_.Control(FaultText(cell, group, EffectOf(cell) + once));
}

void FaultNode::Block(const Cell& cell, int group, bool unkillable) const {
  Cell blocked = cell;
  blocked.fault = unkillable ? "stuck" : "hangs";
  Inject(blocked, group);
}

void FaultNode::BlockBefore(const Cell& cell, int group, std::string_view table) const {
  Cell before;
  for (const Cell& step : CellsOf(table, {"stuck", "hangs"})) {
    if (step.op == cell.op && step.function == cell.function) break;
    if (step.op != "probe") before = step;  // part of drivers_probe
  }
  Block(before, group, true);
}

void FaultNode::Unblock(int group) const {
  for (const int function : {0, 1}) node_.Control("release-blocked " + AddressOf(group, function));
}

void FaultNode::Repair() const {
  node_.Control("clear-faults");
  for (int group = 1; group <= groups_; ++group) {
    for (const int function : {0, 1}) {
      if (StateOf(group, function).present) continue;
      node_.Control("add " + AddressOf(group, function));
    }
  }
}

FunctionState FaultNode::StateOf(int group, int function) const {
  const std::string address = AddressOf(group, function);
  const std::string dir = node_.root() + "/sys/bus/pci/devices/" + address;
  if (!std::filesystem::exists(dir)) return {.present = false};
  std::ifstream d3cold(dir + "/d3cold_allowed");
  FunctionState state{.driver = node_.DriverOf(address),
                      .driver_override = Line(node_.OverrideOf(address))};
  d3cold >> state.d3cold;
  return state;
}

Records FaultNode::ReadRecords() const {
  std::ifstream file(node_.root() + "/proc/sys/kernel/random/boot_id");
  std::string boot_id;
  std::getline(file, boot_id);
  std::vector<Journal::Unreadable> unreadable;
  const auto records = Journal(node_.state_dir(), boot_id).Read(unreadable);
  REQUIRE(records.ok());
  CHECK(unreadable.empty());
  return *records;
}

bool FaultNode::HasRecord(int group, int function) const {
  return std::filesystem::exists(node_.state_dir() + "/devices/" + AddressOf(group, function) +
                                 ".json");
}

bool FaultNode::IsHome(int group) const {
  return StateOf(group, 0) == HomeOf(0) && StateOf(group, 1) == HomeOf(1);
}

bool FaultNode::IsTaken(int group) const {
  const Records records = ReadRecords();
  for (const int function : {0, 1}) {
    if (node_.DriverOf(AddressOf(group, function)) != kVfio) return false;
    const bool done = std::ranges::any_of(records, [&](const auto& entry) {
      return entry.first.ToString() == AddressOf(group, function) && entry.second.IsTaken();
    });
    if (!done) return false;
  }
  return true;
}

std::vector<std::string> FaultNode::WritesOf(int group) const {
  std::vector<std::string> writes;
  const std::string slot = AddressOf(group, 0).substr(0, AddressOf(group, 0).size() - 1);
  std::istringstream lines(node_.Writes());
  for (std::string line; std::getline(lines, line);) {
    if (line.find(slot) != std::string::npos) writes.push_back(line);
  }
  return writes;
}

size_t FaultNode::Running() const {
  size_t count = 0;
  std::istringstream lines(node_.Writes());
  for (std::string line; std::getline(lines, line);) count += line.ends_with(" running") ? 1 : 0;
  return count;
}

void FaultNode::CheckEnd(const Cell& cell, int group) const {
  const int companion = 1 - cell.function;
  const FunctionState state = StateOf(group, cell.function);
  const FunctionState other = StateOf(group, companion);
  INFO("group " << group << ": " << cell.Text() << "\nis " << state << ", companion " << other);
  if (cell.end == "bound") {
    CHECK(IsTaken(group));
    CHECK(state == FunctionState{.driver = kVfio, .driver_override = kVfio, .d3cold = "0"});
    CHECK(other == state);
    return;
  }
  if (cell.end == "gone") {
    CHECK_FALSE(state.present);
  } else if (cell.end == "other") {
    const std::string driver = kOtherDriver.at(static_cast<size_t>(cell.function));
    CHECK(state == FunctionState{.driver = driver, .driver_override = kNone, .d3cold = "1"});
  } else {
    REQUIRE(cell.end == "back");
    CHECK(state == HomeOf(cell.function));
  }
  CHECK(other == HomeOf(companion));
  CHECK_FALSE(HasRecord(group, 0));
  CHECK_FALSE(HasRecord(group, 1));
}

void FaultNode::CheckOneOwnerEach() const {
  for (int group = 1; group <= groups_; ++group) {
    for (const int function : {0, 1}) {
      const FunctionState state = StateOf(group, function);
      INFO(AddressOf(group, function) << ": " << state);
      if (!state.present) continue;
      CHECK_FALSE(state.driver.empty());
      if (state.driver != kVfio) CHECK(state.driver_override == kNone);
    }
  }
}

void FaultNode::CheckHostUntouched() const {
  const std::string writes = node_.Writes();
  for (const char* address : kHost) CHECK(writes.find(address) == std::string::npos);
}

void FaultNode::CheckRoundTrip() const {
  std::vector<FunctionState> wanted;
  for (int group = 1; group <= groups_; ++group) {
    for (const int function : {0, 1}) {
      FunctionState state = HomeOf(function);
      const std::string other = kOtherDriver.at(static_cast<size_t>(function));
      if (StateOf(group, function).driver == other) state.driver = other;
      wanted.push_back(state);
    }
  }
  const ProgramResult bind = node_.Run({"bind", "--parallel", "16"});
  INFO(bind.out << bind.err);
  REQUIRE(bind.exit_code == 0);
  for (int group = 1; group <= groups_; ++group) CHECK(IsTaken(group));
  const ProgramResult release = node_.Run({"release", "--parallel", "16"});
  INFO(release.out << release.err);
  REQUIRE(release.exit_code == 0);
  auto next = wanted.begin();
  for (int group = 1; group <= groups_; ++group) {
    for (const int function : {0, 1}) CHECK(StateOf(group, function) == *next++);
  }
  CHECK(ReadRecords().empty());
}

SmallDisk::SmallDisk(const Node& node) : path_(node.state_dir()) {
  std::filesystem::create_directory(path_);
  REQUIRE(::mount("journal", path_.c_str(), "tmpfs", 0, "size=4m,nr_inodes=1024") == 0);
}

SmallDisk::~SmallDisk() { ::umount2(path_.c_str(), MNT_DETACH); }

void SmallDisk::Fill(int records_left) const {
  // What is filled already stays so: an agent at work would take the room meanwhile.
  const Fd file(::open((path_ + "/filler").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
  REQUIRE(file.valid());
  const std::vector<char> page(4096);  // a record takes one
  while (::write(file.get(), page.data(), page.size()) > 0) continue;
  CHECK(errno == ENOSPC);
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  REQUIRE(::ftruncate(file.get(), size - records_left * off_t{4096}) == 0);
}

void SmallDisk::MakeRoom() const { REQUIRE(::unlink((path_ + "/filler").c_str()) == 0); }

void KillWithChildren(Daemon& daemon) {
  const std::vector<pid_t> children = ChildrenOf(daemon.pid());
  daemon.Signal(SIGKILL);
  for (const pid_t child : children) ::kill(child, SIGKILL);
  REQUIRE(daemon.WaitForEnd(kLong) == 128 + SIGKILL);
}

}  // namespace vfio_agent
