#include "agent/snapshot/additions.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "agent/commands/commands.h"
#include "iommu/policy/naming.h"
#include "sysfs/device/device_walk.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// Without the first slash: below a root.
std::string InRoot(std::string_view path) { return std::string(path.substr(1)); }

std::optional<uint16_t> IdAt(const Recording& recording, const std::string& path) {
  const auto found = recording.items.find(path);
  if (found == recording.items.end()) return std::nullopt;
  std::string_view text = found->second.text;
  if (text.size() < 6 || !text.starts_with("0x")) return std::nullopt;
  const std::optional<uint64_t> id = ParseNumber(text.substr(2, 4), 16);
  return id ? std::optional(static_cast<uint16_t>(*id)) : std::nullopt;
}

std::set<DeviceId> IdsOf(const Recording& recording) {
  constexpr std::string_view kVendor = "/vendor";
  std::set<DeviceId> ids;
  for (const auto& [path, item] : recording.items) {
    if (!path.ends_with(kVendor)) continue;
    const std::string dir = path.substr(0, path.size() - kVendor.size());
    const auto vendor = IdAt(recording, path), device = IdAt(recording, dir + "/device");
    if (vendor && device) ids.emplace(*vendor, *device);
  }
  return ids;
}

// Neither what such a file is called nor what is in it need be this program's.
void AddJournal(const Session& session, Additions& additions, std::vector<std::string>& missing) {
  std::vector<Journal::Unreadable> unreadable;
  const absl::StatusOr<Records> records = session.OpenJournal().Read(unreadable);
  if (!records.ok()) missing.emplace_back("journal: cannot be read");
  for (const Journal::Unreadable& file : unreadable) {
    const std::string name(NameOf(file.path));
    const bool ours = PciAddress::Parse(name.substr(0, name.rfind('.'))).ok();
    missing.push_back(absl::StrFormat("journal: %s cannot be read",
                                      ours ? name : "a file that is named after no device"));
  }
  for (const auto& [address, record] : records.ok() ? *records : Records()) {
    additions[absl::StrFormat("%s/devices/%s.json", InRoot(kDefaultStateDir), address.ToString())] =
        RecordToText(record);
  }
}

// What the snapshot that this one is taken of has not either.
void AddEarlier(const Tree& tree, std::vector<std::string>& missing) {
  constexpr size_t kLimit = size_t{16} << 20;
  const absl::StatusOr<std::string> text = tree.ReadText(kAboutFile, kLimit);
  if (tree.is_host() || !text.ok()) return;
  const Json about = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!about.is_object() || !about.contains("unfinished")) return;
  for (const Json& line : about["unfinished"]) {
    if (!line.is_string()) continue;
    if (std::ranges::count(missing, line.get<std::string>()) == 0) missing.push_back(line);
  }
}

}  // namespace

std::string PolicyToText(const Config& config, bool iommufd) {
  Json document = PolicyToJson(config);
  // A copy has no label that could decide.
  document["mode"] = std::string(Name(config.in_force));
  if (!UseIn(config.in_force, config.mode).vgpus) {
    document["mdev"] = Json::array();
    document["vgpu"] = Json::array();
  }
  document["kubelet"]["iommufd"] = iommufd;
  return DumpYaml(document);
}

std::string ModelNamesToText(const ModelNames& names) {
  std::string text;
  std::optional<uint16_t> vendor;
  for (const auto& [id, name] : names) {
    if (vendor != id.first) text += absl::StrFormat("%04x  Vendor\n", id.first);
    vendor = id.first;
    text += absl::StrFormat("\t%04x  %s\n", id.second, name);
  }
  return text;
}

Additions TakeAdditions(const Session& session, const Recording& recording,
                        std::vector<std::string>& missing) {
  Additions additions;
  additions[InRoot(kDefaultConfigFile)] =
      PolicyToText(session.config(), session.settings().iommufd);
  absl::Status error;
  const ModelNames names = FindModelNames(session.settings().pci_ids, IdsOf(recording), error);
  if (error.ok()) additions[InRoot(kDefaultPciIds)] = ModelNamesToText(names);
  if (!error.ok()) missing.emplace_back("model names: no pci.ids that can be read");
  AddJournal(session, additions, missing);
  AddEarlier(session.tree(), missing);
  return additions;
}

}  // namespace vfio_agent
