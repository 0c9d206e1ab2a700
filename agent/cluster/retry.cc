#include "agent/cluster/retry.h"

#include <algorithm>

namespace vfio_agent {
namespace {

constexpr int kUnauthorized = 401;
constexpr int kForbidden = 403;
constexpr int kDoublings = 20;

}  // namespace

absl::Duration Retry::Next() {
  const absl::Duration pause =
      std::min(limits_.longest, limits_.first * (int64_t{1} << std::min(failures_, kDoublings)));
  ++failures_;
  return pause * std::uniform_real_distribution<double>(0.5, 1.0)(random_);
}

absl::Duration Retry::After(const ApiAnswer& answer) {
  const bool first_refusal = answer.code == kUnauthorized && !unauthorized_;
  unauthorized_ = answer.code == kUnauthorized;
  if (first_refusal) return absl::ZeroDuration();
  if (answer.code == kForbidden) return limits_.longest;
  return std::max(Next(), answer.retry_after);
}

void Retry::Succeeded() {
  failures_ = 0;
  unauthorized_ = false;
}

}  // namespace vfio_agent
