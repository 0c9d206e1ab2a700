#include "agent/work/young_kubelet.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "agent/cluster/checkpoint_pods.h"
#include "agent/files.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// The kubelet makes its sockets anew whenever it starts. A clock that was set since then tells
// nothing; for half a minute that is as good as young.
bool IsYoung(const std::string& socket, absl::Time now) {
  struct stat info = {};
  if (::stat(socket.c_str(), &info) != 0) return false;
  return absl::AbsDuration(now - absl::TimeFromTimespec(info.st_ctim)) < kKubeletYouth;
}

}  // namespace

void AddUnlisted(const Settings& settings, absl::Time now, PodClaims& claims) {
  if (!claims.known) return;
  if (!IsYoung(settings.kubelet_root_dir + "/pod-resources/kubelet.sock", now) &&
      !IsYoung(settings.device_plugin_dir + "/kubelet.sock", now)) {
    return;
  }
  const std::string path = settings.device_plugin_dir + "/" + kKubeletCheckpoint;
  const absl::StatusOr<std::string> text = ReadSmallFile(path, kLargestCheckpoint);
  if (absl::IsNotFound(text.status())) return;
  if (!text.ok()) {
    claims = {.known = false,
              .why_unknown = absl::StrFormat("the kubelet has just started and may not list all of "
                                             "its pods yet, and its checkpoint cannot be read: %s",
                                             Message(text.status()))};
    return;
  }
  std::set<std::pair<std::string, std::string>> listed;
  for (const PodClaim& claim : claims.list) listed.emplace(claim.resource, claim.unit);
  const std::optional<std::vector<PodClaim>> kept = CheckpointClaims(*text);
  for (const PodClaim& claim : kept.value_or(std::vector<PodClaim>())) {
    if (!listed.contains({claim.resource, claim.unit})) claims.list.push_back(claim);
  }
  std::ranges::sort(claims.list);
}

}  // namespace vfio_agent
