// What the kubelet and a DRA driver say to each other of claims, whatever the version. Values.
#pragma once

#include <compare>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace vfio_agent {

struct ClaimRef {
  std::string claim_namespace;
  std::string name;
  std::string uid;
  auto operator<=>(const ClaimRef&) const = default;
};

// One device of a claim, and how a container gets it.
struct ClaimDevice {
  std::vector<std::string> requests;
  std::string pool;
  std::string device;
  std::vector<std::string> cdi_ids;
  std::optional<std::string> share_id;
  bool operator==(const ClaimDevice&) const = default;
};

// Who prepares claims. Called on the server's thread.
class ClaimHandler {
 public:
  using Prepared = std::function<void(absl::StatusOr<std::vector<ClaimDevice>>)>;

  virtual ~ClaimHandler() = default;

  // Calls `done` once, on any thread, perhaps before it returns. Idempotent.
  virtual void Prepare(const ClaimRef& claim, Prepared done) = 0;
  // OK where there is nothing to take back, too.
  virtual absl::Status Unprepare(const ClaimRef& claim) = 0;
};

}  // namespace vfio_agent
