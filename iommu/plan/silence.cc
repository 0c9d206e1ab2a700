#include "iommu/plan/silence.h"

#include "absl/strings/str_format.h"

namespace vfio_agent {

Refusal WhySilent(const PciDevice& device, const std::string& file) {
  return {
      .code = Code::kUnbindStuck,
      .text = absl::StrFormat(
          "the driver of %s does not answer: reading /%s does not return, so nothing is written "
          "to the card, and no more of it given",
          Spell(device), file),
      .remedy =
          absl::StrFormat("see what its driver waits for: `dmesg | grep -e NVRM -e %s`, `ps -eo "
                          "pid,stat,wchan:32,comm | grep ' D'`; it is asked again, ever later",
                          device.address.ToString())};
}

}  // namespace vfio_agent
