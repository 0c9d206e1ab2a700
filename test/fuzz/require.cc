#include "test/fuzz/require.h"

#include <cstdlib>
#include <iostream>

namespace vfio_agent {

void Require(bool holds, std::string_view rule, std::string_view seen) {
  if (holds) return;
  std::cerr << "BROKEN: " << rule;
  if (!seen.empty()) std::cerr << ": '" << seen << "'";
  std::cerr << std::endl;
  std::abort();
}

void RequireError(const absl::Status& status, absl::StatusCode code) {
  Require(status.code() == code, "the error has the code that callers decide by",
          status.ToString());
  Require(!status.message().empty(), "an error says what is wrong");
}

}  // namespace vfio_agent
