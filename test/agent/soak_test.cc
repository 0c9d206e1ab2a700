// A thousand random steps. SOAK_SEED=N repeats the wishes of a run, SOAK_STEPS=N lengthens it; what
// the node answers depends on the clock as well, so a seed alone may not repeat a failure. Untold
// it is 1: a change is judged by itself and not by luck.
#include <cstdlib>
#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "test/agent/soak.h"

namespace vfio_agent {
namespace {

unsigned Number(const char* variable, unsigned otherwise) {
  const char* const text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  unsigned number = otherwise;
  if (text != nullptr) REQUIRE(absl::SimpleAtoi(text, &number));
  return number;
}

TEST_CASE(
    "whatever happens to a node in whatever order, nobody's device is touched and none is "
    "lost",
    "[soak]") {
  const unsigned seed = Number("SOAK_SEED", 1);
  const unsigned steps = Number("SOAK_STEPS", 1000);
  std::cout << "SOAK_SEED=" << seed << " SOAK_STEPS=" << steps << std::endl;
  INFO("SOAK_SEED=" << seed);
  Soak soak(seed);
  const absl::Time start = absl::Now();
  for (unsigned i = 0; i < steps; ++i) soak.Step();
  const double took = absl::ToDoubleSeconds(absl::Now() - start);
  std::cout << absl::StrFormat("%.1f s, %.1f steps a second\n", took, steps / took)
            << soak.Summary() << std::flush;
  soak.CheckWasReal();
  soak.Settle();
  soak.GiveBack();
}

}  // namespace
}  // namespace vfio_agent
