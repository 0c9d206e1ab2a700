#include "agent/text/pci_class.h"

#include <array>
#include <utility>

namespace vfio_agent {
namespace {

// PCI Code and ID Assignment Specification, base and sub class; most specific first.
constexpr std::array<std::pair<uint16_t, std::string_view>, 31> kClasses = {{
    {0x0100, "SCSI controller"},
    {0x0101, "IDE interface"},
    {0x0104, "RAID controller"},
    {0x0106, "SATA controller"},
    {0x0107, "SAS controller"},
    {0x0108, "NVM controller"},
    {0x0180, "Mass storage"},
    {0x0200, "Ethernet controller"},
    {0x0207, "Infiniband controller"},
    {0x0280, "Network controller"},
    {0x0300, "VGA controller"},
    {0x0302, "3D controller"},
    {0x0380, "Display controller"},
    {0x0401, "Multimedia audio"},
    {0x0403, "Audio device"},
    {0x0580, "Memory controller"},
    {0x0600, "Host bridge"},
    {0x0601, "ISA bridge"},
    {0x0604, "PCI bridge"},
    {0x0609, "PCI bridge"},
    {0x0680, "Bridge"},
    {0x0700, "Serial controller"},
    {0x0780, "Communication"},
    {0x0806, "IOMMU"},
    {0x0880, "System peripheral"},
    {0x0c03, "USB controller"},
    {0x0c05, "SMBus"},
    {0x0c80, "Serial bus"},
    {0x1080, "Encryption"},
    {0x1180, "Signal processing"},
    {0x1200, "Accelerator"},
}};

}  // namespace

std::string_view ClassWords(uint32_t class_code) {
  for (const auto& [code, words] : kClasses) {
    if (code == class_code >> 8) return words;
  }
  return "Class";
}

}  // namespace vfio_agent
