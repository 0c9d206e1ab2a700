// ParseKubevirtFile: what anybody says to KubeVirt; an error has its place, and what is taken says
// where each of its parts stands.
#include "agent/kubevirt/file.h"
#include "test/fuzz/require.h"

namespace vfio_agent {
namespace {

constexpr std::string_view kName = "cr.yaml";

void RequirePlace(const std::string& where, std::string_view text) {
  Require(where.starts_with(kName), "every part says where it stands", text);
}

void Check(std::string_view view) {
  const std::string text(view);
  const absl::StatusOr<KubevirtFile> file = ParseKubevirtFile(text, std::string(kName));
  const absl::StatusOr<KubevirtFile> same = ParseKubevirtFile(text, std::string(kName));
  Require(file.ok() == same.ok() && (!file.ok() || *file == *same),
          "the same text gives the same answer", text);
  if (!file.ok()) {
    RequireError(file.status(), absl::StatusCode::kInvalidArgument);
    return RequirePlace(std::string(file.status().message()), text);
  }
  Require(!file->configurations.empty() || !file->machines.empty(),
          "a file with nothing of KubeVirt's is refused", text);
  for (const KubevirtConfiguration& configuration : file->configurations) {
    for (const PermittedDevice& device : configuration.permitted) RequirePlace(device.where, text);
  }
  for (const KubevirtMachine& machine : file->machines) {
    for (const WantedDevice& device : machine.devices) RequirePlace(device.where, text);
  }
}

}  // namespace
}  // namespace vfio_agent

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vfio_agent::Check(vfio_agent::Text(data, size));
  return 0;
}
