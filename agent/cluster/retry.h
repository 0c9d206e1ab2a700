// Retry: how long to wait after an answer that was not the wanted one.
#pragma once

#include <random>

#include "absl/time/time.h"
#include "agent/cluster/api_answer.h"

namespace vfio_agent {

class Retry {
 public:
  struct Limits {
    absl::Duration first = absl::Seconds(1);
    absl::Duration longest = absl::Minutes(1);
    unsigned seed = 1;  // of the jitter: agents that failed together come back one by one
  };

  explicit Retry(Limits limits) : limits_(limits), random_(limits.seed) {}

  // After a failure: from the first pause on ever longer, each by chance up to half shorter. What
  // the server asks for is waited for. A first 401 is tried again at once, with the token that is
  // there by then. Who may not do a thing (403) asks again after the longest pause.
  absl::Duration After(const ApiAnswer& answer);
  void Succeeded();

 private:
  absl::Duration Next();

  Limits limits_;
  std::minstd_rand random_;
  int failures_ = 0;
  bool unauthorized_ = false;
};

}  // namespace vfio_agent
