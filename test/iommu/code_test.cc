#include "iommu/code.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace vfio_agent {
namespace {

// The closed list that logs, JSON and the operator's guide share.
const std::vector<std::pair<Code, std::string>>& Codes() {
  static const std::vector<std::pair<Code, std::string>> codes = {
      {Code::kIommuOff, "iommu-off"},
      {Code::kNoIommuGroup, "no-iommu-group"},
      {Code::kNoiommu, "noiommu"},
      {Code::kForeignMember, "foreign-member"},
      {Code::kInUseNetwork, "in-use-network"},
      {Code::kInUseStorage, "in-use-storage"},
      {Code::kInUseDisplay, "in-use-display"},
      {Code::kInUseHolder, "in-use-holder"},
      {Code::kBootDisplay, "boot-display"},
      {Code::kPfHasVfs, "pf-has-vfs"},
      {Code::kVfNeedsOptIn, "vf-needs-opt-in"},
      {Code::kVfioDriverMissing, "vfio-driver-missing"},
      {Code::kProbeRefused, "probe-refused"},
      {Code::kUnbindTimeout, "unbind-timeout"},
      {Code::kUnbindStuck, "unbind-stuck"},
      {Code::kOverrideUnsupported, "override-unsupported"},
      {Code::kPermissionDenied, "permission-denied"},
      {Code::kRmrrDirect, "rmrr-direct"},
      {Code::kConfigUnreadable, "config-unreadable"},
      {Code::kPowerD3cold, "power-d3cold"},
      {Code::kNoReset, "no-reset"},
      {Code::kSharedBusReset, "shared-bus-reset"},
      {Code::kAcsOverride, "acs-override"},
      {Code::kGroupChanged, "group-changed"},
      {Code::kDriverChanged, "driver-changed"},
      {Code::kNodeMissing, "node-missing"},
      {Code::kGroupSplit, "group-split"},
      {Code::kHeld, "held"},
      {Code::kExcluded, "excluded"},
      {Code::kAddressTooWide, "address-too-wide"},
      {Code::kNameCollision, "name-collision"},
      {Code::kNameInvalid, "name-invalid"},
      {Code::kDeviceGone, "device-gone"},
      {Code::kAerFatal, "aer-fatal"},
      {Code::kForeignManager, "foreign-manager"},
  };
  return codes;
}

TEST_CASE("every code has its own name and a remedy", "[iommu]") {
  std::set<std::string_view> remedies;
  for (size_t i = 0; i < Codes().size(); ++i) {
    const auto& [code, name] = Codes()[i];
    CAPTURE(name);
    CHECK(static_cast<size_t>(code) == i);  // the list above leaves none out
    CHECK(CodeName(code) == name);
    CHECK(DefaultRemedy(code).size() > 10);
    CHECK(remedies.insert(DefaultRemedy(code)).second);
  }
  CHECK(static_cast<size_t>(Code::kForeignManager) + 1 == Codes().size());
}

TEST_CASE("only three codes hinder nothing", "[iommu]") {
  std::set<std::string> warnings;
  for (const auto& [code, name] : Codes()) {
    if (IsWarning(code)) warnings.insert(name);
  }
  CHECK(warnings == std::set<std::string>{"no-reset", "shared-bus-reset", "acs-override"});
}

TEST_CASE("an operator may overrule guards and nothing else", "[iommu]") {
  std::set<std::string> guards;
  for (const auto& [code, name] : Codes()) {
    if (IsGuard(code)) guards.insert(name);
  }
  CHECK(guards == std::set<std::string>{"in-use-network", "in-use-storage", "in-use-display",
                                        "in-use-holder", "boot-display"});
}

// CMake names the guide only where it is there.
#ifdef OPERATORS_GUIDE
// Sections of `path` that are called `name`.
int CountSections(const char* path, const std::string& name) {
  int found = 0;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line == "### " + name) ++found;
  }
  return found;
}

TEST_CASE("every code has one section in the operator's guide", "[iommu]") {
  for (const auto& [code, name] : Codes()) {
    CAPTURE(name);
    CHECK(CountSections(OPERATORS_GUIDE, name) == 1);
  }
}
#endif

TEST_CASE("the code that a text names is found behind whatever says where", "[iommu]") {
  CHECK(FindCode("group-split: a pod has it") == Code::kGroupSplit);
  CHECK(FindCode("nvidia.com/X: 0000:11:00.0 is not healthy: node-missing: no node") ==
        Code::kNodeMissing);
  CHECK(FindCode("nvidia.com/X: 0000:11:00.0: held") == std::nullopt);  // says nothing of it
  CHECK(FindCode("the unit is withheld: wait") == std::nullopt);
  CHECK(FindCode("") == std::nullopt);
}

}  // namespace
}  // namespace vfio_agent
