#include "agent/outlets/cdi.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "agent/text/json.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

bool IsCdiChar(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return absl::ascii_isalnum(byte) || c == '_' || c == '-' || c == '.';
}

bool IsCdiWord(std::string_view word) {
  return !word.empty() && absl::ascii_isalpha(static_cast<unsigned char>(word.front())) &&
         absl::ascii_isalnum(static_cast<unsigned char>(word.back())) &&
         std::ranges::all_of(word, IsCdiChar);
}

// The oldest version that knows all that is in the text, so that old runtimes read it too: 0.5.0
// for names of devices that begin with a digit, 0.6.0 for a dot in the class.
const char* VersionFor(std::string_view resource) {
  const std::string_view kind_class = resource.substr(resource.find('/') + 1);
  return kind_class.find('.') == std::string_view::npos ? "0.5.0" : "0.6.0";
}

bool IsGroupNode(const std::string& node) {
  constexpr std::string_view kDir = "/dev/vfio/";
  return node.starts_with(kDir) && node.size() > kDir.size() &&
         std::all_of(node.begin() + kDir.size(), node.end(),
                     [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
}

std::vector<std::string> NodesOf(const OfferedUnit& unit) {
  std::vector<std::string> nodes;
  std::ranges::copy_if(unit.nodes, std::back_inserter(nodes), IsGroupNode);
  if (!nodes.empty()) return nodes;
  // Without a cdev /dev/iommu is of no use, and not among the nodes either.
  std::ranges::copy_if(unit.nodes, std::back_inserter(nodes),
                       [](const std::string& node) { return node != "/dev/vfio/vfio"; });
  return nodes;
}

Json DeviceOf(const OfferedUnit& unit) {
  Json nodes = Json::array();
  for (const std::string& node : NodesOf(unit)) {
    nodes.push_back({{"path", node}, {"hostPath", node}, {"permissions", "mrw"}});
  }
  if (nodes.empty()) return {};
  return {{"name", unit.id}, {"containerEdits", {{"deviceNodes", std::move(nodes)}}}};
}

}  // namespace

absl::Status CheckCdiKind(std::string_view resource) {
  const size_t slash = resource.find('/');
  if (slash != std::string_view::npos && IsCdiWord(resource.substr(0, slash)) &&
      IsCdiWord(resource.substr(slash + 1))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is no kind of CDI: what is before and what is after the slash must begin "
                      "with a letter and end with a letter or digit",
                      resource));
}

std::string CdiFileName(std::string_view resource) {
  std::string name(resource);
  std::ranges::replace(name, '/', '-');
  return absl::StrFormat("vfio-agent-%s.json", name);
}

std::string CdiText(const Offer& offer) {
  Json devices = Json::array();
  for (const OfferedUnit& unit : offer.units) {
    if (unit.withdrawn != absl::InfiniteFuture()) continue;
    if (Json device = DeviceOf(unit); !device.is_null()) devices.push_back(std::move(device));
  }
  if (devices.empty()) return "";
  return DumpJson({{"cdiVersion", VersionFor(offer.resource)},
                   {"kind", offer.resource},
                   {"devices", std::move(devices)}});
}

CdiSpecs MakeCdiSpecs(const std::vector<Offer>& offers) {
  CdiSpecs specs;
  for (const Offer& offer : offers) {
    if (const absl::Status status = CheckCdiKind(offer.resource); !status.ok()) {
      specs.problems.push_back(Message(status));
      continue;
    }
    std::string text = CdiText(offer);
    if (text.empty()) continue;
    const std::string name = CdiFileName(offer.resource);
    if (specs.files.emplace(name, std::move(text)).second) continue;
    specs.problems.push_back(
        absl::StrFormat("%s: another resource has the file %s", offer.resource, name));
  }
  return specs;
}

}  // namespace vfio_agent
