#include "agent/dra/claim.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "agent/cluster/api_json.h"

namespace vfio_agent {
namespace {

using nlohmann::json;

constexpr size_t kMostResults = 1024;  // the API server takes 32
constexpr size_t kLongestName = 253;

std::string TextOf(const json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

const json& PartOf(const json& object, const char* key) {
  static const json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(key);
  return found == object.end() ? kNone : *found;
}

// Lower-case letters, digits and '-'; and `more`, but not twice in a row, nor at an end.
bool IsName(std::string_view text, char more) {
  char before = more;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = absl::ascii_islower(byte) || absl::ascii_isdigit(byte) || c == '-';
    if (!plain && (c != more || before == more)) return false;
    before = c;
  }
  return before != more && text.size() <= kLongestName;
}

absl::Status Refuse(const ClaimRef& claim, const std::string& why) {
  return absl::FailedPreconditionError(
      absl::StrFormat("ResourceClaim %s/%s %s", claim.claim_namespace, claim.name, why));
}

absl::Status Broken(const ClaimRef& claim) {
  return absl::DataLossError(
      absl::StrFormat("the API server's answer is no ResourceClaim %s/%s as this program knows it",
                      claim.claim_namespace, claim.name));
}

absl::StatusOr<AllocatedDevice> ParseResult(const json& result, const ClaimRef& claim,
                                            const std::string& pool) {
  AllocatedDevice device{.request = TextOf(result, "request"), .device = TextOf(result, "device")};
  const std::string of = TextOf(result, "pool");
  if (of != pool) {
    return Refuse(claim, absl::StrFormat("has %s of the pool %s, and this node's is %s",
                                         device.device, of, pool));
  }
  // Names become parts of paths.
  if (!IsRequestName(device.request) || !IsNamePart(device.device)) return Broken(claim);
  const json& admin = PartOf(result, "adminAccess");
  if (admin.is_boolean() && admin.get<bool>()) {
    return Refuse(claim,
                  "asks for administrators' access (adminAccess): a guest's device has one user");
  }
  if (const std::string share = TextOf(result, "shareID"); !share.empty()) device.share_id = share;
  return device;
}

// Parameters would be silently without effect.
absl::Status CheckNoParameters(const json& configs, const ClaimRef& claim,
                               const std::string& driver) {
  if (!configs.is_array()) return absl::OkStatus();
  for (const json& config : configs) {
    if (TextOf(PartOf(config, "opaque"), "driver") != driver) continue;
    return Refuse(
        claim, absl::StrFormat("has parameters for %s (config.opaque), which takes none", driver));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Allocation> ParseAllocation(std::string_view text, const ClaimRef& claim,
                                           const std::string& driver, const std::string& pool) {
  const absl::StatusOr<ApiJson> parsed = ParseApiJson(text);
  if (!parsed.ok()) return Broken(claim);
  const json& object = *parsed;
  const json& metadata = PartOf(object, "metadata");
  const std::string uid = TextOf(metadata, "uid");
  if (TextOf(object, "kind") != "ResourceClaim" || uid.empty()) return Broken(claim);
  if (uid != claim.uid) {
    return Refuse(claim, absl::StrFormat("is another one now: its uid is %s, the kubelet's is %s",
                                         uid, claim.uid));
  }
  const json& devices = PartOf(PartOf(PartOf(object, "status"), "allocation"), "devices");
  const json& results = PartOf(devices, "results");
  if (!results.is_array()) return Refuse(claim, "is not allocated");
  if (results.size() > kMostResults) return Broken(claim);
  Allocation allocation;
  for (const json& result : results) {
    if (TextOf(result, "driver") != driver) continue;
    auto device = ParseResult(result, claim, pool);
    if (!device.ok()) return device.status();
    allocation.devices.push_back(*std::move(device));
  }
  if (allocation.devices.empty()) return Refuse(claim, "has no device of " + driver);
  if (auto status = CheckNoParameters(PartOf(devices, "config"), claim, driver); !status.ok()) {
    return status;
  }
  allocation.pod_claim_name =
      TextOf(PartOf(metadata, "annotations"), "resource.kubernetes.io/pod-claim-name");
  if (!allocation.pod_claim_name.empty() && !IsNamePart(allocation.pod_claim_name)) {
    return Broken(claim);
  }
  return allocation;
}

absl::Status CheckSameDevices(const PreparedClaim& claim, const Allocation& now) {
  const bool same = std::ranges::equal(
      claim.devices, now.devices,
      [](const PreparedDevice& prepared, const AllocatedDevice& device) {
        return prepared.request == device.request && prepared.device == device.device &&
               prepared.share_id == device.share_id;
      });
  if (same) return absl::OkStatus();
  return Refuse(claim.ref,
                "was prepared with other devices than it is allocated now: delete the pod, so that "
                "the kubelet takes the old ones back");
}

std::string MainRequest(const std::string& request) { return request.substr(0, request.find('/')); }

bool IsRequestName(std::string_view request) { return IsName(request, '/'); }
bool IsNamePart(std::string_view name) { return IsName(name, '.'); }

bool IsPlainUid(std::string_view uid) {
  constexpr size_t kLongest = 64;
  return !uid.empty() && uid.size() <= kLongest && uid.front() != '-' && uid.back() != '-' &&
         std::ranges::all_of(uid, [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-';
         });
}

std::optional<ClaimPod> OnlyPodOf(std::string_view text, const ClaimRef& claim) {
  const absl::StatusOr<ApiJson> object = ParseApiJson(text);
  if (!object.ok() || TextAt(*object, {"metadata", "uid"}) != claim.uid) return std::nullopt;
  const ApiJson* const reserved = At(*object, {"status", "reservedFor"});
  if (reserved == nullptr || !reserved->is_array() || reserved->size() != 1) return std::nullopt;
  const ApiJson& user = reserved->front();
  ClaimPod pod{.name = TextAt(user, {"name"}), .uid = TextAt(user, {"uid"})};
  const bool is_pod = TextAt(user, {"resource"}) == "pods";
  if (!is_pod || !IsNamePart(pod.name) || !IsPlainUid(pod.uid)) return std::nullopt;
  return pod;
}

}  // namespace vfio_agent
