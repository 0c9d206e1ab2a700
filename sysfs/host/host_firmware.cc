#include "sysfs/host/host_firmware.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "sysfs/paths.h"
#include "sysfs/proc_text.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

constexpr std::array<std::string_view, 4> kTables = {"DMAR", "IVRS", "IORT", "VIOT"};

// What stands behind "key\t: " in the first processor's part; nullopt for none.
std::optional<std::string_view> Field(std::string_view cpuinfo, std::string_view key) {
  for (const std::string_view line : Lines(cpuinfo)) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !line.starts_with(key)) continue;
    if (line.substr(key.size(), colon - key.size()).find_first_not_of(" \t") == line.npos) {
      return line.substr(colon + 1);
    }
  }
  return std::nullopt;
}

CpuMaker MakerOf(std::string_view cpuinfo) {
  const std::string_view vendor = Field(cpuinfo, "vendor_id").value_or("");
  if (vendor.find("GenuineIntel") != vendor.npos) return CpuMaker::kIntel;
  if (vendor.find("AuthenticAMD") != vendor.npos || vendor.find("HygonGenuine") != vendor.npos) {
    return CpuMaker::kAmd;
  }
  return Field(cpuinfo, "CPU implementer") ? CpuMaker::kArm : CpuMaker::kOther;
}

void ReadProcessor(const Tree& tree, FirmwareFacts& facts) {
  const absl::StatusOr<std::string> cpuinfo = ReadProcText(tree, "proc/cpuinfo");
  if (!cpuinfo.ok()) {
    facts.virtualization = Fact<bool>::Unknown(ENOENT);
    return;
  }
  facts.maker = MakerOf(*cpuinfo);
  const std::optional<std::string_view> flags = Field(*cpuinfo, "flags");
  if (!flags) return;
  const std::vector<std::string_view> words = Fields(*flags);
  const auto has = [&words](std::string_view word) { return std::ranges::count(words, word) != 0; };
  facts.flag = has("vmx") ? "vmx" : has("svm") ? "svm" : "";
  facts.virtualization = Fact<bool>(!facts.flag.empty());
  facts.is_guest = has("hypervisor");
}

Fact<std::vector<std::string>> ReadTables(const Tree& tree) {
  using Tables = Fact<std::vector<std::string>>;
  const absl::StatusOr<std::vector<std::string>> names = tree.List("sys/firmware/acpi/tables");
  if (!names.ok()) {
    const absl::StatusOr<std::vector<std::string>> firmware = tree.List("sys/firmware");
    return firmware.ok() && !firmware->empty() ? Tables::Absent() : Tables::Unknown(ENOENT);
  }
  std::vector<std::string> found;
  for (const std::string_view table : kTables) {
    if (std::ranges::count(*names, table) != 0) found.emplace_back(table);
  }
  return Tables(std::move(found));
}

}  // namespace

bool IsGuest(const Tree& tree) {
  FirmwareFacts facts;
  ReadProcessor(tree, facts);
  return facts.is_guest;
}

FirmwareFacts ReadFirmwareFacts(const Tree& tree) {
  FirmwareFacts facts;
  ReadProcessor(tree, facts);
  facts.kvm_node = tree.Exists("dev/kvm");
  facts.iommu_tables = ReadTables(tree);
  const absl::StatusOr<std::vector<std::string>> units = tree.List(kIommuClassDir);
  for (const std::string& unit : units.ok() ? *units : std::vector<std::string>()) {
    facts.iommu_units.push_back(Printable(unit));
  }
  return facts;
}

}  // namespace vfio_agent
