#include "sysfs/device/mdev.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "sysfs/device/group_nodes.h"
#include "sysfs/paths.h"
#include "sysfs/proc_text.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

// More than any driver has; what a hostile tree has beyond them is told and left out.
constexpr size_t kMostParents = 1024;
constexpr size_t kMostTypes = 256;
constexpr size_t kMostTypesInAll = 16384;
constexpr size_t kMostInstances = 8192;
constexpr size_t kLongestName = 128;

// Names are shown on terminals, stand in JSON and become part of resource names.
std::string Tidy(const std::string& text) { return Printable(text, kLongestName); }

std::vector<std::string> ListUpTo(const Tree& tree, const std::string& dir, size_t most,
                                  MdevFacts& facts) {
  absl::StatusOr<std::vector<std::string>> names = tree.List(dir);
  if (!names.ok()) return {};
  if (names->size() > most) {
    facts.skipped.push_back(
        absl::StrFormat("%s: %d of %d entries", dir, names->size() - most, names->size()));
    names->resize(most);
  }
  return *std::move(names);
}

// The files of a type that its driver answers.
constexpr std::array<const char*, 3> kTypeFiles = {"device_api", "name", "available_instances"};

std::string TypeFile(const PciAddress& parent, const std::string& type, const char* name) {
  return absl::StrFormat("%s/%s/%s", MdevTypesDir(parent), type, name);
}

void ListTypes(const Tree& tree, size_t room, MdevParent& parent, MdevFacts& facts) {
  const std::string dir = MdevTypesDir(parent.address);
  for (std::string& id : ListUpTo(tree, dir, std::min(room, kMostTypes), facts)) {
    if (id == Tidy(id)) parent.types.push_back({.id = std::move(id)});
  }
}

std::optional<int> CountOf(const absl::StatusOr<std::string>& text) {
  int number = 0;
  if (!text.ok() || !absl::SimpleAtoi(*text, &number) || number < 0) return std::nullopt;
  return number;
}

// False for a type of no use to a guest with PCI: its api is another bus's (vfio-ccw, vfio-ap).
bool Fill(const DriverTexts& texts, MdevParent& parent, MdevType& type) {
  std::array<absl::StatusOr<std::string>, kTypeFiles.size()> answers;
  for (size_t i = 0; i < kTypeFiles.size(); ++i) {
    const std::string path = TypeFile(parent.address, type.id, kTypeFiles[i]);
    answers[i] = TextOf(texts, path);
    if (parent.silent.empty()) parent.silent = SilentFile(path, answers[i].status());
  }
  const auto& [api, name, available] = answers;
  if (name.ok()) type.name = Tidy(*name);
  type.available = CountOf(available);
  return api.ok() && *api == "vfio-pci";
}

// The link leads to the instance's directory, which stands in its parent's.
std::optional<PciAddress> ReadParentOf(const Tree& tree, const std::string& uuid) {
  const absl::StatusOr<std::string> target = tree.ReadLink(MdevDir(uuid));
  if (!target.ok()) return std::nullopt;
  std::string_view path = *target;
  const size_t last = path.rfind('/');
  if (last == std::string_view::npos) return std::nullopt;
  path = path.substr(0, last);
  const auto address = PciAddress::Parse(path.substr(path.rfind('/') + 1));
  return address.ok() ? std::optional(*address) : std::nullopt;
}

MdevInstance ReadInstance(const Tree& tree, const std::string& uuid) {
  MdevInstance instance{.uuid = uuid, .parent = ReadParentOf(tree, uuid)};
  const auto type = tree.ReadLinkName(MdevDir(uuid) + "/mdev_type");
  if (type.ok()) instance.type = Tidy(*type);
  int group = 0;
  const auto link = tree.ReadLinkName(MdevDir(uuid) + "/iommu_group");
  if (link.ok() && absl::SimpleAtoi(*link, &group) && group >= 0) instance.group = group;
  const auto driver = tree.ReadLinkName(MdevDir(uuid) + "/driver");
  if (driver.ok()) instance.driver = Tidy(*driver);
  const std::string cdev = ReadCdev(tree, MdevDir(uuid));
  if (!cdev.empty()) instance.cdev = cdev;
  return instance;
}

}  // namespace

MdevFacts ListMdevs(const Tree& tree) {
  MdevFacts facts;
  size_t room = kMostTypesInAll;
  for (const std::string& name : ListUpTo(tree, kMdevParentsDir, kMostParents, facts)) {
    // mtty and others that are no PCI functions: nobody can select them.
    const auto address = PciAddress::Parse(name);
    if (!address.ok()) continue;
    MdevParent& parent = facts.parents.emplace_back(MdevParent{.address = *address});
    ListTypes(tree, room, parent, facts);
    room -= parent.types.size();
  }
  std::ranges::sort(facts.parents, {}, &MdevParent::address);
  for (const std::string& name : ListUpTo(tree, kMdevDevicesDir, kMostInstances, facts)) {
    if (!IsUuid(name) || name != absl::AsciiStrToLower(name)) {
      facts.skipped.push_back(absl::StrFormat("%s/%s: no uuid", kMdevDevicesDir, Tidy(name)));
      continue;
    }
    facts.instances.push_back(ReadInstance(tree, name));
  }
  return facts;
}

void AddMdevFiles(const MdevFacts& facts, const std::vector<PciDevice>& devices,
                  std::vector<DriverFile>& files) {
  for (const MdevParent& parent : facts.parents) {
    const auto device = std::ranges::lower_bound(devices, parent.address, {}, &PciDevice::address);
    const bool known = device != devices.end() && device->address == parent.address;
    const PciAddress card = known && device->physfn ? *device->physfn : parent.address;
    for (const MdevType& type : parent.types) {
      for (const char* const name : kTypeFiles) {
        files.push_back({parent.address, card, TypeFile(parent.address, type.id, name)});
      }
    }
  }
}

void FillMdevs(const DriverTexts& texts, MdevFacts& facts) {
  for (MdevParent& parent : facts.parents) {
    std::vector<MdevType> types;
    for (MdevType& type : parent.types) {
      if (Fill(texts, parent, type)) types.push_back(std::move(type));
    }
    // A type without its name would be another resource.
    parent.types = parent.silent.empty() ? std::move(types) : std::vector<MdevType>();
  }
}

void KeepMdevs(const MdevFacts& before, MdevFacts& now) {
  for (MdevParent& parent : now.parents) {
    const MdevParent* const old = FindMdevParent(before, parent.address);
    if (parent.silent.empty() || old == nullptr) continue;
    parent.types = old->types;
    for (MdevType& type : parent.types) type.available.reset();
  }
}

bool IsUuid(std::string_view text) {
  constexpr std::string_view kShape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  return std::ranges::equal(text, kShape, [](char c, char shape) {
    return shape == '-' ? c == '-' : absl::ascii_isxdigit(static_cast<unsigned char>(c));
  });
}

bool HasOwnMark(std::string_view uuid) { return IsUuid(uuid) && uuid.substr(14, 4) == "8f10"; }

const MdevParent* FindMdevParent(const MdevFacts& facts, const PciAddress& address) {
  const auto found = std::ranges::find(facts.parents, address, &MdevParent::address);
  return found == facts.parents.end() ? nullptr : &*found;
}

const MdevType* FindMdevType(const MdevParent& parent, std::string_view id_or_name) {
  auto found = std::ranges::find(parent.types, id_or_name, &MdevType::id);
  if (found == parent.types.end()) {
    found = std::ranges::find(parent.types, id_or_name, &MdevType::name);
  }
  return found == parent.types.end() ? nullptr : &*found;
}

const MdevInstance* FindMdev(const MdevFacts& facts, std::string_view uuid) {
  const auto found = std::ranges::find(facts.instances, uuid, &MdevInstance::uuid);
  return found == facts.instances.end() ? nullptr : &*found;
}

}  // namespace vfio_agent
