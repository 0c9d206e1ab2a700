#include "agent/dra/claim_files.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <set>

#include "absl/strings/str_format.h"
#include "agent/files.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr mode_t kDirMode = 0755;
constexpr mode_t kFileMode = 0644;  // the virt-launcher is not root
constexpr char kContainerDir[] = "/var/run/kubernetes.io/dra-device-attributes";
constexpr char kMetadataFile[] = "metadata.json";

std::string MetadataDir(const ClaimPlaces& places, const std::string& uid) {
  return absl::StrFormat("%s/%s", places.metadata_dir, uid);
}

std::string MetadataPath(const ClaimPlaces& places, const std::string& uid,
                         const std::string& request) {
  return absl::StrFormat("%s/%s/%s", MetadataDir(places, uid), request, kMetadataFile);
}

// Where a pod finds the file of a request: by its own name for the claim, where it has one.
std::string ContainerPath(const ClaimPlaces& places, const PreparedClaim& claim,
                          const std::string& request) {
  const bool own = !claim.pod_claim_name.empty();
  return absl::StrFormat("%s/%s/%s/%s/%s-metadata.json", kContainerDir,
                         own ? "resourceclaimtemplates" : "resourceclaims",
                         own ? claim.pod_claim_name : claim.ref.name, request, places.driver);
}

Json NodesOf(const OfferedUnit& unit) {
  Json nodes = Json::array();
  for (const std::string& node : unit.nodes) {
    nodes.push_back({{"path", node}, {"hostPath", node}, {"permissions", "mrw"}});
  }
  return nodes;
}

Json MountOf(const ClaimPlaces& places, const PreparedClaim& claim, const std::string& request) {
  return {{"hostPath", MetadataPath(places, claim.ref.uid, request)},
          {"containerPath", ContainerPath(places, claim, request)},
          {"options", {"ro", "bind"}}};
}

std::set<std::string> RequestsOf(const PreparedClaim& claim) {
  std::set<std::string> requests;
  for (const PreparedDevice& device : claim.devices) requests.insert(MainRequest(device.request));
  return requests;
}

absl::Status RemoveEmptyDirectory(const std::string& path) {
  if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return ErrnoStatus(absl::StrFormat("remove %s", path));
}

std::vector<std::string> NamesIn(const std::string& path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(path.c_str()), ::closedir);
  if (dir == nullptr) return names;
  while (const dirent* entry = ::readdir(dir.get())) {  // NOLINT(concurrency-mt-unsafe)
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  return names;
}

}  // namespace

std::string ClaimCdiId(const std::string& driver, const std::string& uid,
                       const std::string& device) {
  return absl::StrFormat("%s/claim=%s-%s", driver, uid, device);
}

std::string ClaimCdiFile(const ClaimPlaces& places, const std::string& uid) {
  return absl::StrFormat("%s/dra-claim_%s_%s.json", places.cdi_dir, places.driver, uid);
}

std::string ClaimCdiText(const ClaimPlaces& places, const PreparedClaim& claim,
                         const std::vector<RealDevice>& devices) {
  std::set<std::string> told;
  Json list = Json::array();
  for (const RealDevice& real : devices) {
    Json edits = {{"deviceNodes", NodesOf(*real.unit)}};
    const std::string request = MainRequest(real.prepared->request);
    if (told.insert(request).second) {
      edits["mounts"] = Json::array({MountOf(places, claim, request)});
    }
    list.push_back({{"name", absl::StrFormat("%s-%s", claim.ref.uid, real.prepared->device)},
                    {"containerEdits", std::move(edits)}});
  }
  return DumpJson(
      {{"cdiVersion", "0.5.0"}, {"kind", places.driver + "/claim"}, {"devices", std::move(list)}});
}

std::string MetadataText(const ClaimPlaces& places, const PreparedClaim& claim,
                         const std::string& request, const std::vector<RealDevice>& devices) {
  Json list = Json::array();
  for (const RealDevice& real : devices) {
    if (MainRequest(real.prepared->request) != request) continue;
    list.push_back({{"driver", places.driver},
                    {"pool", claim.pool},
                    {"name", real.prepared->device},
                    {"attributes", AttributesToJson(*real.device)}});
  }
  Json json = {{"apiVersion", "metadata.resource.k8s.io/v1alpha1"},
               {"kind", "DeviceMetadata"},
               {"metadata",
                {{"name", claim.ref.name},
                 {"namespace", claim.ref.claim_namespace},
                 {"uid", claim.ref.uid},
                 {"generation", 1}}}};
  if (!claim.pod_claim_name.empty()) json["podClaimName"] = claim.pod_claim_name;
  json["requests"] = Json::array({{{"name", request}, {"devices", std::move(list)}}});
  return DumpJson(json);
}

absl::Status WriteClaimFiles(const ClaimPlaces& places, const PreparedClaim& claim,
                             const std::vector<RealDevice>& devices) {
  for (const std::string& request : RequestsOf(claim)) {
    const std::string path = MetadataPath(places, claim.ref.uid, request);
    RETURN_IF_ERROR(MakeDirectories(path.substr(0, path.rfind('/')), kDirMode));
    RETURN_IF_ERROR(ReplaceFile(path, MetadataText(places, claim, request, devices), kFileMode));
  }
  RETURN_IF_ERROR(MakeDirectories(places.cdi_dir, kDirMode));
  return ReplaceFile(ClaimCdiFile(places, claim.ref.uid), ClaimCdiText(places, claim, devices),
                     kFileMode);
}

bool HasClaimFiles(const ClaimPlaces& places, const PreparedClaim& claim) {
  ClaimPlaces then = places;
  if (!claim.cdi_dir.empty()) then.cdi_dir = claim.cdi_dir;
  const auto is_there = [](const std::string& path) { return ::access(path.c_str(), F_OK) == 0; };
  return is_there(ClaimCdiFile(then, claim.ref.uid)) &&
         std::ranges::all_of(RequestsOf(claim), [&](const std::string& request) {
           return is_there(MetadataPath(places, claim.ref.uid, request));
         });
}

absl::Status RemoveClaimFiles(const ClaimPlaces& places, const std::string& uid) {
  RETURN_IF_ERROR(RemoveRegularFile(ClaimCdiFile(places, uid)));
  const std::string dir = MetadataDir(places, uid);
  for (const std::string& request : NamesIn(dir)) {
    const std::string inner = absl::StrFormat("%s/%s", dir, request);
    for (const std::string& file : NamesIn(inner)) {
      RETURN_IF_ERROR(RemoveRegularFile(absl::StrFormat("%s/%s", inner, file)));
    }
    RETURN_IF_ERROR(RemoveEmptyDirectory(inner));
  }
  return RemoveEmptyDirectory(dir);
}

}  // namespace vfio_agent
