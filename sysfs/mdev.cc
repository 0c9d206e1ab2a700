#include "sysfs/mdev.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "sysfs/group_nodes.h"
#include "sysfs/paths.h"
#include "sysfs/proc_text.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

// More than any driver has; what a hostile tree has beyond them is told and left out.
constexpr size_t kMostParents = 1024;
constexpr size_t kMostTypes = 256;
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

std::optional<int> ReadAvailable(const Tree& tree, const std::string& dir) {
  const absl::StatusOr<std::string> text = tree.ReadText(dir + "/available_instances");
  int number = 0;
  if (!text.ok() || !absl::SimpleAtoi(*text, &number) || number < 0) return std::nullopt;
  return number;
}

// A type whose api is another bus's (vfio-ccw, vfio-ap) is of no use to a guest with PCI.
MdevParent ReadParent(const Tree& tree, const PciAddress& address, MdevFacts& facts) {
  MdevParent parent{.address = address};
  const std::string dir = MdevTypesDir(address);
  for (const std::string& id : ListUpTo(tree, dir, kMostTypes, facts)) {
    const std::string type = absl::StrFormat("%s/%s", dir, id);
    const absl::StatusOr<std::string> api = tree.ReadText(type + "/device_api");
    if (!api.ok() || *api != "vfio-pci" || id != Tidy(id)) continue;
    const absl::StatusOr<std::string> name = tree.ReadText(type + "/name");
    parent.types.push_back(
        {.id = id, .name = name.ok() ? Tidy(*name) : "", .available = ReadAvailable(tree, type)});
  }
  return parent;
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

MdevFacts ReadMdevFacts(const Tree& tree) {
  MdevFacts facts;
  for (const std::string& name : ListUpTo(tree, kMdevParentsDir, kMostParents, facts)) {
    // mtty and others that are no PCI functions: nobody can select them.
    const auto address = PciAddress::Parse(name);
    if (address.ok()) facts.parents.push_back(ReadParent(tree, *address, facts));
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
