#include "test/conformance/runner.h"

#include <fnmatch.h>

#include <algorithm>
#include <memory>
#include <set>

#include "absl/strings/str_format.h"
#include "sysfs/status.h"

namespace vfio_agent::conformance {
namespace {

using Generation = FakeKubelet::Generation;

bool Matches(const Check& check, const std::vector<std::string>& patterns) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), check.name, 0) == 0 ||
           ::fnmatch(pattern.c_str(), check.rule, 0) == 0;
  });
}

Result MakeResult(const Check& check, Generation generation, const absl::Status& status) {
  const Verdict verdict = status.ok()           ? Verdict::kPass
                          : WasNotTried(status) ? Verdict::kNotTried
                                                : Verdict::kFail;
  return {.check = check, .generation = generation, .verdict = verdict, .reason = Message(status)};
}

// The checks of one generation. The stand that checks share is made anew after a failure: nobody
// knows in what state that has left the plugin.
class Round {
 public:
  Round(const SuiteOptions& options, Generation generation)
      : options_(options), generation_(generation) {}

  Result Run(const Check& check) {
    if (check.needs == Check::Needs::kPlugin) return RunOnShared(check);
    shared_.reset();  // two plugins at a time would be a case of its own
    Stand own(options_, generation_);
    return Told(check, own, check.run(own));
  }

 private:
  Result RunOnShared(const Check& check) {
    absl::Status status;
    if (shared_ == nullptr) {
      shared_ = std::make_unique<Stand>(options_, generation_);
      status = shared_->Serve();
    }
    if (status.ok()) status = check.run(*shared_);
    const Result result = Told(check, *shared_, status);
    if (result.verdict == Verdict::kFail) shared_.reset();
    return result;
  }

  Result Told(const Check& check, const Stand& stand, const absl::Status& status) const {
    Result result = MakeResult(check, generation_, status);
    if (result.verdict != Verdict::kFail) return result;
    const std::string output = stand.Output();
    if (!output.empty()) result.reason += "\n  the plugin's last words:\n" + output;
    return result;
  }

  const SuiteOptions& options_;
  const Generation generation_;
  std::unique_ptr<Stand> shared_;
};

const char* NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "pass";
    case Verdict::kFail:
      return "FAIL";
    case Verdict::kNotTried:
      break;
  }
  return "not tried";
}

}  // namespace

std::vector<Check> Selected(const SuiteOptions& options) {
  std::vector<Check> checks = AllChecks();
  std::erase_if(checks, [&](const Check& check) {
    return (!options.only.empty() && !Matches(check, options.only)) || Matches(check, options.skip);
  });
  // Those that share a stand first, so that it is made once.
  std::ranges::stable_partition(
      checks, [](const Check& check) { return check.needs == Check::Needs::kPlugin; });
  return checks;
}

std::vector<Result> RunChecks(const SuiteOptions& options, const std::vector<Check>& checks,
                              const std::function<void(const Result& result)>& told) {
  std::vector<Result> results;
  for (const Generation generation : options.generations) {
    Round round(options, generation);
    for (const Check& check : checks) {
      results.push_back(round.Run(check));
      told(results.back());
    }
  }
  return results;
}

std::string Line(const Result& result) {
  const char* generation = result.generation == Generation::k136 ? "k136" : "k137";
  std::string line =
      absl::StrFormat("%-9s  %-3s  %s  %-24s  %s", NameOf(result.verdict), result.check.rule,
                      generation, result.check.name, result.check.sentence);
  if (!result.reason.empty()) line += ": " + result.reason;
  return line;
}

std::string Summary(const std::vector<Result>& results) {
  const auto count = [&](Verdict verdict) {
    return std::ranges::count(results, verdict, &Result::verdict);
  };
  std::string text = absl::StrFormat("%d passed, %d failed, %d not tried", count(Verdict::kPass),
                                     count(Verdict::kFail), count(Verdict::kNotTried));
  std::set<std::string> named;
  for (const Result& result : results) {
    if (result.verdict != Verdict::kNotTried || !named.insert(result.check.name).second) continue;
    text += absl::StrFormat("\nnot tried: %s (%s): %s", result.check.name, result.check.rule,
                            result.reason);
  }
  return text;
}

bool AllKept(const std::vector<Result>& results) {
  return std::ranges::none_of(
      results, [](const Result& result) { return result.verdict == Verdict::kFail; });
}

}  // namespace vfio_agent::conformance
