#include "agent/session.h"

#include "iommu/naming.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

absl::StatusOr<Settings> SettingsOf(const Invocation& invocation, const Config& config) {
  return MakeSettings(
      {.flags = invocation.flags, .file = config.settings, .file_name = config.file_name});
}

}  // namespace

Session::Session(Invocation invocation, Config config, Settings settings, Tree tree)
    : invocation_(std::move(invocation)),
      config_(std::move(config)),
      settings_(std::move(settings)),
      tree_(std::move(tree)),
      reader_(tree_),
      modules_(ReadModuleFacts(tree_)) {}

absl::StatusOr<std::unique_ptr<Session>> Session::Open(const Invocation& invocation) {
  absl::StatusOr<Config> config = ReadConfig(invocation.config_file);
  // Whatever is wrong with a file that was named, the command line is what to mend.
  if (!config.ok()) return absl::InvalidArgumentError(config.status().message());
  ASSIGN_OR_RETURN(Settings settings, SettingsOf(invocation, *config));
  ASSIGN_OR_RETURN(Tree tree, Tree::Open(invocation.root));
  return std::unique_ptr<Session>(
      new Session(invocation, *std::move(config), std::move(settings), std::move(tree)));
}

SettingSources Session::Sources() const {
  return {.flags = invocation_.flags, .file = config_.settings, .file_name = config_.file_name};
}

absl::Status Session::Reload() {
  ASSIGN_OR_RETURN(Config config, ReadConfig(invocation_.config_file));
  ASSIGN_OR_RETURN(Settings settings, SettingsOf(invocation_, config));
  config_ = std::move(config);
  settings_ = std::move(settings);
  modules_ = ReadModuleFacts(tree_);
  looked_up_.clear();  // names found once stay: a resource must not change its name under a pod
  return absl::OkStatus();
}

absl::StatusOr<Picture> Session::Take(std::vector<std::string>& notes) {
  ASSIGN_OR_RETURN(NodeFacts facts, TakeNodeFacts(tree_, reader_, modules_));
  std::set<DeviceId> fresh;
  for (const PciDevice& device : facts.devices) {
    const DeviceId id{device.vendor, device.device};
    if (device.IsBridge() || !looked_up_.insert(id).second) continue;
    fresh.insert(id);
  }
  if (!fresh.empty()) {
    absl::Status error;
    names_.merge(FindModelNames(settings_.pci_ids, fresh, error));
    if (!error.ok()) {
      notes.push_back(Message(error) + ": devices are named by their ids");
    }
  }
  Plan plan = MakePlan(facts, config_.policy, names_);
  return Picture{.facts = std::move(facts), .names = names_, .plan = std::move(plan)};
}

}  // namespace vfio_agent
