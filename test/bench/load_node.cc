#include "test/bench/load_node.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

constexpr int kFirstGroup = 20;
constexpr absl::Duration kPatience = absl::Seconds(30);

std::string IdOf(int unit) { return absl::StrFormat("0000:%02x:00.0", 16 + unit); }

std::string MachineText() {
  std::string text = "name: load\nhost: {iommu_active: true, iommu: intel}\ndevices:\n";
  for (int unit = 0; unit < kSteadyUnits + kMovingUnits; ++unit) {
    text += absl::StrFormat(
        "- {address: \"%s\", vendor: \"10de\", device: \"2330\", class: \"0x030200\", "
        "driver: vfio-pci, iommu_group: %d, reset_method: flr}\n",
        IdOf(unit), kFirstGroup + unit);
  }
  return text;
}

std::string ResourceText(const char* name, int first, int count) {
  std::string text = absl::StrFormat("- name: %s\n  select:\n", name);
  for (int unit = first; unit < first + count; ++unit) {
    text += absl::StrFormat("  - {address: \"%s\"}\n", IdOf(unit));
  }
  return text;
}

std::string Write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  return path;
}

absl::Status Dump(const std::string& machine, const std::string& dir) {
  std::vector<std::string> words = {SIM_NODE, "--machine", machine, "--dump", dir};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = -1;
  int status = -1;
  if (::posix_spawn(&pid, SIM_NODE, nullptr, nullptr, arguments.data(), environ) != 0 ||
      ::waitpid(pid, &status, 0) != pid || status != 0) {
    return absl::InternalError("sim-node cannot dump a tree");
  }
  return absl::OkStatus();
}

bool Rename(const std::string& from, const std::string& to) {
  return ::rename(from.c_str(), to.c_str()) == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoadNode>> LoadNode::Make(Kind kind, const std::string& scratch) {
  std::unique_ptr<LoadNode> node(new LoadNode);
  const std::string machine = Write(scratch + "/machine.yaml", MachineText());
  node->config_ =
      Write(scratch + "/config.yaml", "resources:\n" + ResourceText(kSteady, 0, kSteadyUnits) +
                                          ResourceText(kMoving, kSteadyUnits, kMovingUnits));
  if (kind == Kind::kSimulated) {
    auto mount = sim::SimMount::Start({"--machine", machine});
    if (!mount.ok()) return mount.status();
    node->mount_ = *std::move(mount);
    node->root_ = node->mount_->root();
    return node;
  }
  node->root_ = scratch + "/node";
  node->away_ = scratch + "/away";
  fs::create_directory(node->away_);
  const absl::Status status = Dump(machine, node->root_);
  if (!status.ok()) return status;
  return node;
}

std::vector<std::string> LoadNode::SteadyIds() {
  std::vector<std::string> ids;
  for (int unit = 0; unit < kSteadyUnits; ++unit) ids.push_back(IdOf(unit));
  return ids;
}

// A simulated kernel gives a device that comes back to no driver: the agent binds it anew.
bool LoadNode::Unplug(const std::string& id) const {
  if (mount_ != nullptr) return mount_->Control("remove " + id) == 0;
  return Rename(root_ + "/sys/bus/pci/devices/" + id, away_ + "/" + id);
}

bool LoadNode::Plug(const std::string& id) const {
  if (mount_ != nullptr) return mount_->Control("add " + id) == 0;
  return Rename(away_ + "/" + id, root_ + "/sys/bus/pci/devices/" + id);
}

Plugger::Plugger(const LoadNode& node, const FakeKubelet& kubelet)
    : node_(node), kubelet_(kubelet), thread_([this](const std::stop_token& stop) {
        for (int unit = 0; !stop.stop_requested() && !failed_; ++unit) {
          const std::string id = IdOf(kSteadyUnits + unit % kMovingUnits);
          failed_ = !Step(id, false) || !Step(id, true);
        }
      }) {}

bool Plugger::Step(const std::string& id, bool plug) {
  if (!(plug ? node_.Plug(id) : node_.Unplug(id))) return false;
  ++steps_;
  return kubelet_.WaitHealthy(kMoving, plug ? kMovingUnits : kMovingUnits - 1, kPatience);
}

}  // namespace vfio_agent
