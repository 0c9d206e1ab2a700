#include "test/support/config_bytes.h"

#include <algorithm>

namespace vfio_agent {

ConfigBytes& ConfigBytes::Put8(size_t at, unsigned value) {
  bytes_.at(at) = static_cast<std::byte>(value & 0xff);
  return *this;
}

ConfigBytes& ConfigBytes::Put16(size_t at, unsigned value) {
  return Put8(at, value).Put8(at + 1, value >> 8);
}

ConfigBytes& ConfigBytes::Put32(size_t at, unsigned value) {
  return Put16(at, value).Put16(at + 2, value >> 16);
}

ConfigBytes& ConfigBytes::Header(unsigned type, bool multifunction) {
  return Put8(0x0e, type | (multifunction ? 0x80u : 0u));
}

size_t ConfigBytes::AddStandard(unsigned id) {
  const size_t at = next_;
  Put16(0x06, 0x10);  // status: there is a capability list
  Put8(link_, static_cast<unsigned>(at)).Put8(at, id);
  link_ = at + 1;
  next_ += 0x40;
  return at;
}

ConfigBytes& ConfigBytes::Pcie(PcieType type, bool flr) {
  const size_t at = AddStandard(0x10);
  return Put16(at + 2, static_cast<unsigned>(type) << 4 | 2).Put32(at + 4, flr ? 1u << 28 : 0);
}

ConfigBytes& ConfigBytes::AdvancedFeatures(bool flr) {
  const size_t at = AddStandard(0x13);
  return Put8(at + 2, 6).Put8(at + 3, flr ? 0x03 : 0x01);
}

ConfigBytes& ConfigBytes::WithAcs(Acs acs) {
  Put32(0x100, 0x148u << 20 | 0x10001);
  return Put32(0x148, 0x1000d).Put16(0x14c, acs.capability).Put16(0x14e, acs.control);
}

ConfigBytes& ConfigBytes::Cut(size_t size_bytes) {
  bytes_.resize(size_bytes);
  return *this;
}

std::string ConfigBytes::text() const {
  std::string text;
  for (const std::byte byte : bytes_) text += static_cast<char>(byte);
  return text;
}

ConfigBytes EndpointConfig(bool multifunction) {
  return ConfigBytes().Header(0, multifunction).Pcie(PcieType::kEndpoint, true);
}

ConfigBytes ConventionalConfig(bool multifunction) {
  return ConfigBytes(256).Header(0, multifunction);
}

ConfigBytes PortConfig(PcieType type, std::optional<Acs> acs, bool multifunction) {
  ConfigBytes config = ConfigBytes().Header(1, multifunction).Pcie(type);
  if (acs) config.WithAcs(*acs);
  return config;
}

ConfigBytes DeadConfig() {
  ConfigBytes config;
  for (size_t at = 0; at < 4096; ++at) config.Put8(at, 0xff);
  return config;
}

}  // namespace vfio_agent
