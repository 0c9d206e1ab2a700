// The log lines of claims of dynamic resource allocation.
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/daemon/dra_room.h"
#include "agent/daemon/report.h"

namespace vfio_agent {
namespace {

std::string_view KindName(ClaimEvent::Kind kind) {
  switch (kind) {
    case ClaimEvent::Kind::kPrepared:
      return "claim_prepared";
    case ClaimEvent::Kind::kPrepareFailed:
      return "claim_refused";
    case ClaimEvent::Kind::kUnprepared:
      return "claim_unprepared";
    case ClaimEvent::Kind::kUnprepareFailed:
      return "unprepare_failed";
  }
  return "";
}

bool Failed(ClaimEvent::Kind kind) {
  return kind == ClaimEvent::Kind::kPrepareFailed || kind == ClaimEvent::Kind::kUnprepareFailed;
}

}  // namespace

Event ClaimSeen(const ClaimEvent& seen) {
  const std::string name = std::string(KindName(seen.kind));
  Event event{.level = Failed(seen.kind) ? Level::kWarn : Level::kInfo, .name = name};
  event.With("claim", absl::StrFormat("%s/%s", seen.claim.claim_namespace, seen.claim.name))
      .With("uid", seen.claim.uid)
      .With("ids", absl::StrJoin(seen.units, ","))
      .With("err", seen.text);
  if (seen.pod) {
    event.With("pod", absl::StrFormat("%s/%s", seen.claim.claim_namespace, seen.pod->name))
        .With("pod_uid", seen.pod->uid);
  }
  if (Failed(seen.kind)) {
    event.With("next", "the kubelet tries again");
    event.With("remedy", RemedyIn(seen.text, seen.units.empty() ? "" : seen.units.front()));
  }
  return event;
}

}  // namespace vfio_agent
