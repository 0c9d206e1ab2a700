#include "test/conformance/check.h"

namespace vfio_agent::conformance {

std::vector<Check> AllChecks() {
  std::vector<Check> all;
  for (const auto part :
       {RegistrationChecks(), ListChecks(), AllocateChecks(), AnswerChecks(), PreferredChecks(),
        HealthChecks(), RestartChecks(), FaultChecks(), ProcessChecks()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace vfio_agent::conformance
