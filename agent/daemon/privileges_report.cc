#include "agent/daemon/report.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace vfio_agent {

Event PrivilegesMissing(const std::vector<Lack>& lacks) {
  Event event{.level = Level::kWarn, .name = "privileges_missing"};
  const auto name = [](std::string* out, const Lack& lack) { out->append(lack.what); };
  const auto spell = [](std::string* out, const Lack& lack) {
    absl::StrAppendFormat(out, "without %s %s", lack.what, lack.without);
  };
  return event.With("missing", absl::StrJoin(lacks, ", ", name))
      .With("text", absl::StrJoin(lacks, "; ", spell));
}

}  // namespace vfio_agent
