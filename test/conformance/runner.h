// Runs checks on a plugin and tells the results.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "test/conformance/check.h"

namespace vfio_agent::conformance {

enum class Verdict { kPass, kFail, kNotTried };

struct Result {
  Check check;
  FakeKubelet::Generation generation;
  Verdict verdict;
  std::string reason;  // empty where it passed
};

// The checks that `only` and `skip` leave.
std::vector<Check> Selected(const SuiteOptions& options);

// One after the other, for each generation; `told` is called with each result as it comes.
std::vector<Result> RunChecks(const SuiteOptions& options, const std::vector<Check>& checks,
                              const std::function<void(const Result& result)>& told);

// "pass       R23  k136  list-at-once  the first message comes at once".
std::string Line(const Result& result);
// Counts, and the names of what was not tried.
std::string Summary(const std::vector<Result>& results);
bool AllKept(const std::vector<Result>& results);  // nothing failed

}  // namespace vfio_agent::conformance
