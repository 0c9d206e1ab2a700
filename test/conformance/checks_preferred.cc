// GetPreferredAllocation.
#include <algorithm>
#include <set>

#include "sysfs/status.h"
#include "test/conformance/calls.h"
#include "test/conformance/check.h"

namespace vfio_agent::conformance {
namespace {

absl::Status Offered(Stand& stand) {
  ASSIGN_OR_RETURN(const auto options, OptionsOf(stand));
  if (options.get_preferred_allocation_available()) return absl::OkStatus();
  return NotTried("it does not offer GetPreferredAllocation");
}

bool Contains(const Ids& ids, const std::string& id) { return std::ranges::count(ids, id) > 0; }

absl::Status MustBeThere(Stand& stand) {
  RETURN_IF_ERROR(Offered(stand));
  const Ids ids = stand.Ids();
  if (ids.size() < 2) return NotTried("it has one device only");
  for (const std::string& must : ids) {
    const auto got = Preferred(stand, ids, {must}, 2);
    RETURN_IF_ERROR(Require(got.ok(), "%s", Message(got.status())));
    RETURN_IF_ERROR(Require(Contains(*got, must), "\"%s\" must be included, and is not", must));
  }
  return absl::OkStatus();
}

// For all sizes and for what is left when the first devices are taken.
absl::Status Judge(Stand& stand,
                   const std::function<absl::Status(const Ids&, const Ids&, size_t)>& judge) {
  RETURN_IF_ERROR(Offered(stand));
  for (Ids available = stand.Ids(); !available.empty(); available.erase(available.begin())) {
    for (size_t size = 1; size <= available.size(); ++size) {
      const auto got = Preferred(stand, available, {}, size);
      RETURN_IF_ERROR(
          Require(got.ok(), "%d of %d: %s", size, available.size(), Message(got.status())));
      RETURN_IF_ERROR(judge(available, *got, size));
    }
  }
  return absl::OkStatus();
}

absl::Status OnlyAvailable(Stand& stand) {
  return Judge(stand, [](const Ids& available, const Ids& got, size_t) {
    for (const std::string& id : got) {
      RETURN_IF_ERROR(Require(Contains(available, id), "\"%s\" is not available", id));
    }
    return absl::OkStatus();
  });
}

absl::Status ExactSize(Stand& stand) {
  return Judge(stand, [](const Ids&, const Ids& got, size_t size) {
    const std::set<std::string> distinct(got.begin(), got.end());
    return Require(got.size() == size && distinct.size() == size,
                   "%d devices preferred, %d of them distinct, where %d were wanted", got.size(),
                   distinct.size(), size);
  });
}

// An error of this call costs the pod its admission.
absl::Status NeverFails(Stand& stand) {
  RETURN_IF_ERROR(Offered(stand));
  const Ids ids = stand.Ids();
  const std::vector<std::pair<Ids, Ids>> odd = {
      {{}, {}}, {{"no-such-device-0"}, {}}, {ids, {"no-such-device-0"}}, {{}, ids}, {ids, ids}};
  for (const auto& [available, must] : odd) {
    const auto got = Preferred(stand, available, must, 1);
    RETURN_IF_ERROR(Require(got.ok(), "an error for %d available, %d that must be: %s",
                            available.size(), must.size(), Message(got.status())));
  }
  return absl::OkStatus();
}

absl::Status TooMany(Stand& stand) {
  RETURN_IF_ERROR(Offered(stand));
  const Ids ids = stand.Ids();
  const auto got = Preferred(stand, ids, {}, ids.size() + 1);
  RETURN_IF_ERROR(Require(got.ok(), "an error: %s", Message(got.status())));
  return Require(got->empty(), "%d devices preferred where %d were wanted of %d", got->size(),
                 ids.size() + 1, ids.size());
}

constexpr auto kPlugin = Check::Needs::kPlugin;

constexpr Check kChecks[] = {
    {"preferred-must", "R49", "what must be included is preferred", kPlugin, MustBeThere},
    {"preferred-available", "R49", "only what is available is preferred", kPlugin, OnlyAvailable},
    {"preferred-size", "R49", "as many are preferred as are wanted", kPlugin, ExactSize},
    {"preferred-no-error", "R49", "GetPreferredAllocation is never an error", kPlugin, NeverFails},
    {"preferred-too-many", "R49", "more than there are: nothing is preferred", kPlugin, TooMany},
};

}  // namespace

std::span<const Check> PreferredChecks() { return kChecks; }

}  // namespace vfio_agent::conformance
