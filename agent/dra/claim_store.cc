#include "agent/dra/claim_store.h"

#include <dirent.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "agent/files.h"
#include "sysfs/device/mdev.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

using nlohmann::json;

constexpr char kSchema[] = "vfio-agent/claim/v2";
constexpr char kFirstSchema[] = "vfio-agent/claim/v1";
constexpr char kSchemaFamily[] = "vfio-agent/claim/";
constexpr char kSuffix[] = ".json";
constexpr size_t kMostClaims = 4096;
constexpr uint64_t kHighestGroup = 0x7fffffff;  // of an int

std::string Dump(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Over the object without its checksum, keys sorted.
std::string Checksum(const json& object) {
  const std::string text = Dump(object);
  const auto* const bytes = reinterpret_cast<const Bytef*>(text.data());
  return absl::StrFormat("%08x", ::crc32(0, bytes, static_cast<uInt>(text.size())));
}

std::string TextOf(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

json GivenToJson(const GivenUnit& given) {
  json object = {{"addresses", given.addresses}, {"groups", given.groups}};
  if (!given.mdev_type.empty()) object["mdev_type"] = given.mdev_type;
  if (!given.vgpu_type.empty()) object["vgpu_type"] = given.vgpu_type;
  return object;
}

// It becomes part of paths and of variables: a function's address, or a mediated device's uuid.
bool IsAddress(const std::string& text, const GivenUnit& given) {
  return given.mdev_type.empty() ? PciAddress::Parse(text).ok() : IsUuid(text);
}

// Absent in the first version.
absl::StatusOr<std::optional<GivenUnit>> ParseGiven(const json& device) {
  const auto found = device.find("given");
  if (found == device.end()) return std::nullopt;
  const absl::Status broken = absl::DataLossError("what a unit was is not understood");
  if (!found->is_object()) return broken;
  const json addresses = found->value("addresses", json());
  const json groups = found->value("groups", json());
  if (!addresses.is_array() || addresses.empty() || !groups.is_array() || groups.empty()) {
    return broken;
  }
  GivenUnit given{.mdev_type = TextOf(*found, "mdev_type"),
                  .vgpu_type = TextOf(*found, "vgpu_type")};
  for (const json& address : addresses) {
    if (!address.is_string() || !IsAddress(address.get<std::string>(), given)) return broken;
    given.addresses.push_back(address.get<std::string>());
  }
  for (const json& group : groups) {
    if (!group.is_number_unsigned() || group.get<uint64_t>() > kHighestGroup) return broken;
    given.groups.push_back(group.get<int>());
  }
  return given;
}

json DeviceToJson(const PreparedDevice& device) {
  json object = {{"request", device.request},
                 {"device", device.device},
                 {"resource", device.resource},
                 {"unit", device.unit}};
  if (device.share_id) object["share_id"] = *device.share_id;
  if (device.given) object["given"] = GivenToJson(*device.given);
  return object;
}

absl::StatusOr<std::vector<PreparedDevice>> ParseDevices(const json& object) {
  const auto list = object.find("devices");
  if (list == object.end() || !list->is_array() || list->empty()) {
    return absl::DataLossError("it has no devices");
  }
  std::vector<PreparedDevice> devices;
  for (const json& item : *list) {
    if (!item.is_object()) return absl::DataLossError("a device is no object");
    PreparedDevice device{.request = TextOf(item, "request"),
                          .device = TextOf(item, "device"),
                          .resource = TextOf(item, "resource"),
                          .unit = TextOf(item, "unit")};
    if (item.contains("share_id")) device.share_id = TextOf(item, "share_id");
    if (!IsRequestName(device.request) || !IsNamePart(device.device) || device.unit.empty()) {
      return absl::DataLossError("a device lacks its request, its name or its unit");
    }
    ASSIGN_OR_RETURN(device.given, ParseGiven(item));
    devices.push_back(std::move(device));
  }
  return devices;
}

// The file's name is the uid that it speaks of: a copy under another name is no claim.
absl::StatusOr<PreparedClaim> ReadClaim(const std::string& path, const std::string& name) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path));
  ASSIGN_OR_RETURN(PreparedClaim claim, ParseClaim(text));
  if (claim.ref.uid + kSuffix == name) return claim;
  return absl::DataLossError(absl::StrFormat("it speaks of %s", claim.ref.uid));
}

// A mediated device has a uuid for its address, and is held by that.
void AddGiven(const PreparedDevice& device, bool this_boot, PodClaims& claims) {
  for (const std::string& text : device.given->addresses) {
    const auto address = PciAddress::Parse(text);
    if (!address.ok()) continue;
    if (this_boot) claims.given.insert(*address);
    if (text != device.unit) {
      AddParts({{{device.resource, device.unit}, {*address}}}, claims.parts);
    }
  }
}

}  // namespace

std::string ClaimToText(const PreparedClaim& claim) {
  json devices = json::array();
  for (const PreparedDevice& device : claim.devices) devices.push_back(DeviceToJson(device));
  json object = {
      {"schema", kSchema},      {"uid", claim.ref.uid},   {"namespace", claim.ref.claim_namespace},
      {"name", claim.ref.name}, {"pool", claim.pool},     {"pod_claim_name", claim.pod_claim_name},
      {"devices", devices},     {"driver", claim.driver}, {"cdi_dir", claim.cdi_dir}};
  if (!claim.boot_id.empty()) object["boot_id"] = claim.boot_id;
  object["checksum"] = Checksum(object);
  return Dump(object) + "\n";
}

absl::StatusOr<PreparedClaim> ParseClaim(std::string_view text) {
  json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return absl::DataLossError("no JSON object");
  const std::string schema = TextOf(object, "schema");
  const bool known = schema == kSchema || schema == kFirstSchema;
  if (schema.starts_with(kSchemaFamily) && !known) {
    return absl::UnimplementedError(
        absl::StrFormat("of another version (%s): this one writes %s", schema, kSchema));
  }
  if (!known) return absl::DataLossError("no claim of " + std::string(kSchema));
  const std::string checksum = TextOf(object, "checksum");
  object.erase("checksum");
  if (checksum != Checksum(object)) return absl::DataLossError("the checksum does not fit");
  PreparedClaim claim{.ref = {.claim_namespace = TextOf(object, "namespace"),
                              .name = TextOf(object, "name"),
                              .uid = TextOf(object, "uid")},
                      .pool = TextOf(object, "pool"),
                      .pod_claim_name = TextOf(object, "pod_claim_name"),
                      .driver = TextOf(object, "driver"),
                      .cdi_dir = TextOf(object, "cdi_dir"),
                      .boot_id = TextOf(object, "boot_id")};
  if (!IsPlainUid(claim.ref.uid)) return absl::DataLossError("its uid is none");
  if (!claim.driver.empty() && !IsNamePart(claim.driver)) {
    return absl::DataLossError("its driver's name is none");
  }
  if (!claim.cdi_dir.empty() && !claim.cdi_dir.starts_with('/')) {
    return absl::DataLossError("its cdi_dir is no full path");
  }
  ASSIGN_OR_RETURN(claim.devices, ParseDevices(object));
  return claim;
}

std::string ClaimStore::PathOf(const std::string& uid) const {
  return absl::StrFormat("%s/%s%s", dir_, uid, kSuffix);
}

absl::StatusOr<PreparedClaims> ClaimStore::Read(std::vector<std::string>& problems) const {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(dir_.c_str()), ::closedir);
  if (dir == nullptr) {
    if (errno == ENOENT) return PreparedClaims();
    return ErrnoStatus(absl::StrFormat("open %s", dir_));
  }
  PreparedClaims claims;
  while (const dirent* entry = ::readdir(dir.get())) {  // NOLINT(concurrency-mt-unsafe)
    const std::string name = entry->d_name;
    if (!name.ends_with(kSuffix)) continue;
    if (claims.size() >= kMostClaims) {
      problems.push_back(absl::StrFormat("%s has more than %d claims", dir_, kMostClaims));
      break;
    }
    const std::string path = absl::StrFormat("%s/%s", dir_, name);
    absl::StatusOr<PreparedClaim> claim = ReadClaim(path, name);
    if (absl::IsNotFound(claim.status())) continue;  // taken back just now
    if (!claim.ok()) {
      problems.push_back(
          absl::StrFormat("%s is no prepared claim: %s", path, Message(claim.status())));
      continue;
    }
    std::string uid = claim->ref.uid;
    claims.emplace(std::move(uid), *std::move(claim));
  }
  return claims;
}

absl::Status ClaimStore::Write(const PreparedClaim& claim) const {
  RETURN_IF_ERROR(MakeDirectories(dir_));
  return ReplaceFile(PathOf(claim.ref.uid), ClaimToText(claim));
}

absl::Status ClaimStore::Forget(const std::string& uid) const {
  return RemoveRegularFile(PathOf(uid));
}

std::vector<PodClaim> ClaimsOf(const PreparedClaims& claims) {
  std::vector<PodClaim> list;
  for (const auto& [uid, claim] : claims) {
    for (const PreparedDevice& device : claim.devices) {
      list.push_back({.pod_namespace = claim.ref.claim_namespace,
                      .pod = claim.ref.name,
                      .resource = device.resource,
                      .unit = device.unit});
    }
  }
  std::ranges::sort(list);
  return list;
}

void AddResourceClaims(const std::string& state_dir, const std::string& boot_id,
                       PodClaims& claims) {
  std::vector<std::string> problems;
  const absl::StatusOr<PreparedClaims> prepared = ClaimStore(state_dir).Read(problems);
  if (!prepared.ok()) problems.push_back(Message(prepared.status()));
  if (!problems.empty() && claims.known) {
    claims.known = false;
    claims.why_unknown = problems.front();
  }
  if (!prepared.ok() || prepared->empty()) return;
  const std::vector<PodClaim> more = ClaimsOf(*prepared);
  claims.list.insert(claims.list.end(), more.begin(), more.end());
  std::ranges::sort(claims.list);
  for (const auto& [uid, claim] : *prepared) {
    for (const PreparedDevice& device : claim.devices) {
      if (device.given) AddGiven(device, !boot_id.empty() && claim.boot_id == boot_id, claims);
    }
  }
}

}  // namespace vfio_agent
