#include "sysfs/device/pci_device.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "sysfs/device/config_space.h"
#include "sysfs/paths.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

constexpr std::string_view kDriverPunctuation = "_-+.,:@";
constexpr uint16_t kClassPciBridge = 0x0604;
constexpr size_t kLongestNote = 512;
constexpr uint16_t kClassSemiTransparentBridge = 0x0609;

// Reads the attributes of one device; what goes wrong is noted in the device, not returned.
class Reader {
 public:
  Reader(const TreeDir& dir, PciDevice& device) : dir_(dir), device_(device) {}

  void SetEntries(std::vector<Entry> entries) { entries_ = std::move(entries); }
  bool Has(const char* name) const {
    return std::ranges::any_of(entries_, [name](const Entry& e) { return e.name == name; });
  }
  const std::vector<Entry>& entries() const { return entries_; }

  // A device and a copy of a tree choose their texts themselves.
  void Note(std::string_view what) { device_.errors.push_back(Printable(what, kLongestNote)); }

  Fact<std::string> Text(const char* name) {
    if (!Has(name)) return Fact<std::string>::Absent();
    absl::StatusOr<std::string> text = dir_.ReadText(name);
    if (text.ok()) return Fact<std::string>(*std::move(text));
    Note(Message(text.status()));
    return Fact<std::string>::Unknown(ErrnoOf(text.status()));
  }

  // "0x" and exactly `digits` hex digits, the form in which the kernel prints ids.
  template <typename T>
  Fact<T> Hex(const char* name, size_t digits) {
    const Fact<std::string> text = Text(name);
    if (!text.known()) return text.absent() ? Fact<T>::Absent() : Fact<T>::Unknown(text.error());
    const std::string& s = text.value();
    uint32_t value = 0;
    const char* const end = s.data() + s.size();
    const bool shaped = s.size() == digits + 2 && s.starts_with("0x");
    if (shaped && std::from_chars(s.data() + 2, end, value, 16).ptr == end) {
      return Fact<T>(static_cast<T>(value));
    }
    Note(absl::StrFormat("%s: want 0x and %d hex digits, found '%s'", name, digits, s));
    return Fact<T>::Unknown(EINVAL);
  }

  Fact<int> Number(const char* name) {
    const Fact<std::string> text = Text(name);
    if (!text.known()) {
      return text.absent() ? Fact<int>::Absent() : Fact<int>::Unknown(text.error());
    }
    int value = 0;
    if (absl::SimpleAtoi(text.value(), &value)) return Fact<int>(value);
    Note(absl::StrFormat("%s: want a number, found '%s'", name, text.value()));
    return Fact<int>::Unknown(EINVAL);
  }

  Fact<uint64_t> Count(const char* name) {
    const Fact<int> number = Number(name);
    if (number.known()) return Fact<uint64_t>(static_cast<uint64_t>(std::max(0, number.value())));
    return number.absent() ? Fact<uint64_t>::Absent() : Fact<uint64_t>::Unknown(number.error());
  }

  Fact<bool> Flag(const char* name) {
    const Fact<int> number = Number(name);
    if (number.known()) return Fact<bool>(number.value() != 0);
    return number.absent() ? Fact<bool>::Absent() : Fact<bool>::Unknown(number.error());
  }

  // An absent link is an answer ("no driver"), not an error.
  std::optional<std::string> Link(const char* name) {
    if (!Has(name)) return std::nullopt;
    absl::StatusOr<std::string> target = dir_.ReadLinkName(name);
    if (target.ok() && !target->empty()) return *std::move(target);
    if (!absl::IsNotFound(target.status())) {
      Note(target.ok() ? absl::StrFormat("%s: empty link", name) : Message(target.status()));
    }
    return std::nullopt;
  }

  // The driver's name. It becomes part of paths and of the commands that are printed, so strange
  // characters are replaced; and a link that cannot be read is a driver that is not known, not
  // none.
  std::optional<std::string> DriverName() {
    const size_t notes = device_.errors.size();
    std::optional<std::string> name = Link("driver");
    if (!name && device_.errors.size() == notes) return std::nullopt;
    const std::string read = name.value_or("");
    std::string plain = read;
    for (char& c : plain) {
      if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) &&
          kDriverPunctuation.find(c) == std::string_view::npos) {
        c = '?';
      }
    }
    if (plain.find_first_not_of('.') == std::string::npos) plain.assign(1, '?');
    if (name && plain != read) Note(absl::StrFormat("driver: strange name '%s'", read));
    return plain;
  }

  std::optional<PciAddress> AddressLink(const char* name) {
    const std::optional<std::string> target = Link(name);
    if (!target) return std::nullopt;
    const absl::StatusOr<PciAddress> address = PciAddress::Parse(*target);
    if (address.ok()) return *address;
    Note(absl::StrFormat("%s: %s", name, address.status().message()));
    return std::nullopt;
  }

 private:
  const TreeDir& dir_;
  PciDevice& device_;
  std::vector<Entry> entries_;
};

void ReadIds(Reader& reader, PciDevice& device) {
  const Fact<uint16_t> vendor = reader.Hex<uint16_t>("vendor", 4);
  const Fact<uint16_t> id = reader.Hex<uint16_t>("device", 4);
  const Fact<uint32_t> code = reader.Hex<uint32_t>("class", 6);
  if (vendor.absent() || id.absent() || code.absent())
    reader.Note("vendor, device or class absent");
  device.vendor = vendor.value();
  device.device = id.value();
  device.class_code = code.value();
  device.subsystem_vendor = reader.Hex<uint16_t>("subsystem_vendor", 4);
  device.subsystem_device = reader.Hex<uint16_t>("subsystem_device", 4);
  device.revision = reader.Hex<uint8_t>("revision", 2);
}

void ReadPlace(Reader& reader, PciDevice& device) {
  device.driver = reader.DriverName();
  if (const std::optional<std::string> group = reader.Link("iommu_group")) {
    int number = -1;
    if (absl::SimpleAtoi(*group, &number) && number >= 0) {
      device.group = number;
    } else {
      reader.Note(absl::StrFormat("iommu_group: not a group number: '%s'", *group));
    }
  }
  const Fact<int> node = reader.Number("numa_node");
  if (node.known() && node.value() >= 0) device.numa_node = node.value();
}

void ReadSriov(Reader& reader, PciDevice& device) {
  device.physfn = reader.AddressLink("physfn");
  device.sriov_total_vfs = reader.Number("sriov_totalvfs");
  if (device.sriov_total_vfs.known()) {
    device.vfs_autoprobe = reader.Flag("sriov_drivers_autoprobe");
  }
  for (const Entry& entry : reader.entries()) {
    if (!entry.name.starts_with("virtfn")) continue;
    if (const auto vf = reader.AddressLink(entry.name.c_str())) device.virtfns.push_back(*vf);
  }
  std::ranges::sort(device.virtfns);
}

// One line for each region: "start end flags", all zero where there is none.
std::vector<Bar> ParseResource(const std::string& text) {
  std::vector<Bar> bars;
  int index = 0;
  for (const auto& line : absl::StrSplit(text, '\n')) {
    const std::vector<std::string> field = absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t start = 0, end = 0;
    if (index > 6 || field.size() < 2 || !absl::SimpleHexAtoi(field[0], &start) ||
        !absl::SimpleHexAtoi(field[1], &end)) {
      break;
    }
    // All of 64 bits has no size in 64 bits, and is no region.
    const uint64_t beyond = end - start;
    if (end > start && beyond != UINT64_MAX) {
      bars.push_back({.index = index, .size_bytes = beyond + 1});
    }
    ++index;
  }
  return bars;
}

void ReadState(Reader& reader, const Tree& tree, PciDevice& device) {
  device.boot_vga = reader.Flag("boot_vga");
  device.reset_method = reader.Text("reset_method");
  device.power_state = reader.Text("power_state");
  device.bars = ParseResource(reader.Text("resource").value());
  device.modalias = reader.Text("modalias").value();
  device.has_override = reader.Has("driver_override");
  if (reader.Has("vfio-dev")) {
    const auto names = tree.List(DeviceDir(device.address) + "/vfio-dev");
    if (names.ok() && !names->empty()) device.vfio_cdev = names->front();
  }
}

// "TOTAL_ERR_FATAL 3": the last of the lines, one for each kind of error.
Fact<uint64_t> ReadFatalErrors(Reader& reader) {
  const Fact<std::string> text = reader.Text("aer_dev_fatal");
  if (!text.known()) {
    return text.absent() ? Fact<uint64_t>::Absent() : Fact<uint64_t>::Unknown(text.error());
  }
  constexpr std::string_view kTotal = "TOTAL_ERR_FATAL ";
  const size_t at = text.value().find(kTotal);
  uint64_t count = 0;
  if (at != std::string::npos &&
      absl::SimpleAtoi(text.value().substr(at + kTotal.size()), &count)) {
    return Fact<uint64_t>(count);
  }
  reader.Note("aer_dev_fatal: no line TOTAL_ERR_FATAL with a number");
  return Fact<uint64_t>::Unknown(EINVAL);
}

void ReadConfig(Reader& reader, ConfigReader& config, const TreeDir& dir, PciDevice& device) {
  absl::StatusOr<ConfigImage> image = absl::NotFoundError("config: absent");
  if (reader.Has("config")) image = config.Read(device.address, dir);
  if (!image.ok()) {
    reader.Note(Message(image.status()));
    image = ConfigImage{};
  }
  device.config = DecodeConfig(image->bytes, image->size_bytes, device.IsVf());
  // The kernel marks every function but the first, whatever its header says (pci_scan_slot()).
  if (device.address.function > 0 && !device.IsVf()) device.config.multifunction = true;
  if (image->bytes.size() >= 0x40 && !device.config.all_ones) return;
  // Without a header the class is the next best sign of a bridge.
  device.config.is_bridge =
      device.Class16() == kClassPciBridge || device.Class16() == kClassSemiTransparentBridge;
}

// The directory's real place spells the way from the host bridge down:
// "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0". Trees without links tell no parents.
void ReadPath(const TreeDir& dir, PciDevice& device) {
  const absl::StatusOr<std::string> place = dir.RealPath();
  if (!place.ok()) return;
  for (const auto& view : absl::StrSplit(*place, '/')) {
    const std::string part(view);
    if (part.starts_with("pci") && part.find(':') != std::string::npos) {
      device.root = part;
      device.path.clear();
    } else if (!device.root.empty()) {
      const absl::StatusOr<PciAddress> address = PciAddress::Parse(part);
      if (address.ok() && *address != device.address) device.path.push_back(*address);
    }
  }
  if (!device.path.empty()) device.parent = device.path.back();
}

}  // namespace

absl::StatusOr<PciDevice> ReadPciDevice(const Tree& tree, ConfigReader& config,
                                        const PciAddress& address) {
  PciDevice device{.address = address};
  absl::StatusOr<TreeDir> dir = TreeDir::Open(tree, DeviceDir(address));
  if (absl::IsNotFound(dir.status())) return dir.status();
  if (!dir.ok()) {
    device.errors.push_back(Printable(Message(dir.status()), kLongestNote));
    return device;
  }
  Reader reader(*dir, device);
  absl::StatusOr<std::vector<Entry>> entries = dir->List();
  if (!entries.ok()) {
    reader.Note(Message(entries.status()));
    return device;
  }
  reader.SetEntries(*std::move(entries));
  ReadIds(reader, device);
  ReadPlace(reader, device);
  ReadSriov(reader, device);
  ReadState(reader, tree, device);
  ReadConfig(reader, config, *dir, device);
  // Behind the header, which tells bridges: their power is nobody's concern here.
  if (!device.IsBridge()) device.d3cold_allowed = reader.Flag("d3cold_allowed");
  // Of what guests may have: these are whole files to read, and nobody asks for others'. And of
  // root ports, which alone count most of them.
  if (device.driver && device.driver->find("vfio") != std::string::npos) {
    device.aer_fatal = ReadFatalErrors(reader);
  } else if (device.IsBridge()) {
    device.aer_fatal = reader.Count("aer_rootport_total_err_fatal");
  }
  device.removable = reader.Text("removable").is("removable");
  ReadPath(*dir, device);
  if (!device.errors.empty() &&
      absl::IsNotFound(tree.OpenAt(DeviceDir(address), O_PATH).status())) {
    return absl::NotFoundError(
        absl::StrFormat("%s went away while it was read", address.ToString()));
  }
  return device;
}

}  // namespace vfio_agent
