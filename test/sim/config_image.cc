#include "test/sim/config_image.h"

#include <cstdint>

namespace vfio_agent::sim {
namespace {

// Where this file puts the capabilities. Free choice: readers must follow the list.
constexpr size_t kPowerManagementAt = 0x40;
constexpr size_t kExpressAt = 0x60;
constexpr size_t kAerAt = 0x100;
constexpr size_t kAcsAt = 0x148;
constexpr size_t kSriovAt = 0x160;

class Image {
 public:
  explicit Image(size_t size) : bytes_(size, '\0') {}

  void Put8(size_t at, uint32_t value) { bytes_.at(at) = static_cast<char>(value & 0xff); }
  void Put16(size_t at, uint32_t value) {
    Put8(at, value);
    Put8(at + 1, value >> 8);
  }
  void Put32(size_t at, uint32_t value) {
    Put16(at, value);
    Put16(at + 2, value >> 16);
  }
  size_t size() const { return bytes_.size(); }
  std::string Take(size_t size) const { return bytes_.substr(0, size); }

 private:
  std::string bytes_;
};

bool IsBridgePort(PortType port) {
  return port == PortType::kRootPort || port == PortType::kUpstream ||
         port == PortType::kDownstream || port == PortType::kPcieToPci;
}

bool Resets(const MachineDevice& device, const std::string& way) {
  const std::string ways = " " + device.reset_method.value_or("") + " ";
  return ways.find(" " + way + " ") != std::string::npos;
}

// Bits 7:4 of the PCI Express Capabilities Register.
uint32_t TypeCode(PortType port) {
  switch (port) {
    case PortType::kRootPort:
      return 4;
    case PortType::kUpstream:
      return 5;
    case PortType::kDownstream:
      return 6;
    case PortType::kPcieToPci:
      return 7;
    case PortType::kRootComplexEndpoint:
      return 9;
    default:
      return 0;
  }
}

void PutHeader(Image& image, const MachineDevice& device, const ConfigContext& context) {
  const bool bridge = device.is_bridge;
  const bool vf = !device.physfn.empty();
  image.Put16(0x00, vf ? 0xffff : device.vendor);
  image.Put16(0x02, vf ? 0xffff : device.device);
  image.Put16(0x04, vf ? 0 : 0x0507);  // decoding on, bus master, SERR, INTx off
  image.Put16(0x06, 0x0010);           // has a capability list
  image.Put8(0x08, device.revision);
  image.Put8(0x09, device.class_code);
  image.Put16(0x0a, device.class_code >> 8);
  image.Put8(0x0e, (bridge ? 1u : 0u) | (context.multifunction ? 0x80u : 0u));
  if (bridge) {
    image.Put8(0x18, static_cast<uint32_t>(context.primary));
    image.Put8(0x19, static_cast<uint32_t>(context.secondary));
    image.Put8(0x1a, static_cast<uint32_t>(context.subordinate));
  } else {
    image.Put16(0x2c, device.subsystem_vendor);
    image.Put16(0x2e, device.subsystem_device);
  }
  image.Put8(0x34, kPowerManagementAt);
}

void PutCapabilities(Image& image, const MachineDevice& device, const ConfigContext& context) {
  const bool express = context.port != PortType::kConventional;
  image.Put8(kPowerManagementAt, 0x01);
  image.Put8(kPowerManagementAt + 1, express ? kExpressAt : 0);
  image.Put16(kPowerManagementAt + 2, 0x0003);
  // NoSoftReset clear is what lets the kernel offer "pm" as a way to reset.
  image.Put16(kPowerManagementAt + 4, Resets(device, "pm") ? 0 : 0x0008);
  if (!express) return;
  image.Put8(kExpressAt, 0x10);
  const uint32_t slot = IsBridgePort(context.port) ? 0x0100 : 0;
  image.Put16(kExpressAt + 2, 0x0002 | (TypeCode(context.port) << 4) | slot);
  image.Put32(kExpressAt + 4, 0x00008001 | (Resets(device, "flr") ? 1u << 28 : 0));
  image.Put32(kExpressAt + 0x0c, 0x00000104);  // x16, 16 GT/s
  image.Put16(kExpressAt + 0x12, 0x0104);
}

// Each extended header: id, version 1 and the next one's offset (0 ends the list).
void PutExtended(Image& image, size_t at, uint32_t id, size_t next) {
  image.Put32(at, id | 1u << 16 | static_cast<uint32_t>(next) << 20);
}

void PutExtendedCapabilities(Image& image, const MachineDevice& device) {
  const bool acs = device.acs == AcsFact::kGiven;
  const bool sriov = device.sriov_total_vfs > 0;
  PutExtended(image, kAerAt, 0x0001, acs ? kAcsAt : sriov ? kSriovAt : 0);
  if (acs) {
    PutExtended(image, kAcsAt, 0x000d, sriov ? kSriovAt : 0);
    image.Put16(kAcsAt + 4, device.acs_capability);
    image.Put16(kAcsAt + 6, device.acs_control);
  }
  if (sriov) {
    PutExtended(image, kSriovAt, 0x0010, 0);
    image.Put16(kSriovAt + 0x0c, static_cast<uint32_t>(device.sriov_total_vfs));
    image.Put16(kSriovAt + 0x0e, static_cast<uint32_t>(device.sriov_total_vfs));
    image.Put16(kSriovAt + 0x14, static_cast<uint32_t>(device.sriov_offset));
    image.Put16(kSriovAt + 0x16, static_cast<uint32_t>(device.sriov_stride));
    image.Put16(kSriovAt + 0x1a, device.sriov_vf_device ? device.sriov_vf_device : device.device);
  }
}

}  // namespace

int ConfigSize(const MachineDevice& device, PortType port) {
  if (device.config_size != 0) return device.config_size;
  return port == PortType::kConventional ? 256 : 4096;
}

std::string MakeConfigImage(const MachineDevice& device, const ConfigContext& context) {
  constexpr size_t kHeaderBytes = 64;
  const auto size = static_cast<size_t>(ConfigSize(device, context.port));
  if (device.config == ConfigKind::kAllOnes) return std::string(size, '\xff');
  Image image(size);
  PutHeader(image, device, context);
  PutCapabilities(image, device, context);
  if (size > kAerAt) PutExtendedCapabilities(image, device);
  if (device.config == ConfigKind::kOneByte) return image.Take(1);
  // The kernel shows no more than the header to a reader without CAP_SYS_ADMIN. An unknown ACS
  // is served that way: "could not read" and not "is not there".
  const bool hidden = device.config == ConfigKind::kHeader || device.acs == AcsFact::kUnknown;
  return image.Take(hidden ? kHeaderBytes : size);
}

}  // namespace vfio_agent::sim
