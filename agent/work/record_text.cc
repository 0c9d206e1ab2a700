#include <zlib.h>

#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "agent/work/journal.h"

namespace vfio_agent {
namespace {

using nlohmann::json;

constexpr char kSchema[] = "vfio-agent/journal/v1";
constexpr char kSchemaFamily[] = "vfio-agent/journal/";

// A driver_override may be any bytes; JSON is UTF-8.
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

absl::Status Broken(const std::string& why) { return absl::DataLossError(why); }

absl::StatusOr<std::vector<PciAddress>> MembersOf(const json& object) {
  std::vector<PciAddress> members;
  const auto found = object.find("members");
  if (found == object.end() || !found->is_array()) return Broken("members: no list");
  for (const json& item : *found) {
    if (!item.is_string()) return Broken("members: no address");
    const auto address = PciAddress::Parse(item.get<std::string>());
    if (!address.ok()) return Broken("members: no address");
    members.push_back(*address);
  }
  return members;
}

bool ParseId(const std::string& text, Record& record) {
  uint32_t vendor = 0, device = 0;
  if (text.size() != 9 || text[4] != ':' || !absl::SimpleHexAtoi(text.substr(0, 4), &vendor) ||
      !absl::SimpleHexAtoi(text.substr(5), &device)) {
    return false;
  }
  record.vendor = static_cast<uint16_t>(vendor);
  record.device = static_cast<uint16_t>(device);
  return true;
}

}  // namespace

std::string RecordToText(const Record& record) {
  json members = json::array();
  for (const PciAddress& member : record.members) members.push_back(member.ToString());
  json object = {
      {"schema", kSchema},
      {"address", record.address.ToString()},
      {"id", absl::StrFormat("%04x:%04x", record.vendor, record.device)},
      {"boot_id", record.boot_id},
      {"group", record.group},
      {"members", members},
      {"driver", record.driver},
      {"driver_override", record.driver_override},
      {"d3cold_allowed", record.d3cold_allowed ? json(*record.d3cold_allowed) : json(nullptr)},
      {"to", record.to},
      {"releasing", record.releasing},
      {"step", record.step}};
  // Only where there is something to say, so that other records read as they always did.
  if (record.vfs) object["vfs"] = *record.vfs;
  if (record.vfs_autoprobe) object["vfs_autoprobe"] = *record.vfs_autoprobe;
  if (record.vgpu_type) object["vgpu_type"] = *record.vgpu_type;
  if (!record.vgpu_name.empty()) object["vgpu_name"] = record.vgpu_name;
  object["checksum"] = Checksum(object);
  return Dump(object) + "\n";
}

absl::StatusOr<Record> ParseRecord(std::string_view text) {
  json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return Broken("no JSON object");
  const std::string schema = TextOf(object, "schema");
  if (schema.starts_with(kSchemaFamily) && schema != kSchema) {
    return absl::UnimplementedError(
        absl::StrFormat("of another version (%s): this one writes %s", schema, kSchema));
  }
  if (schema != kSchema) return Broken(absl::StrFormat("no record of %s", kSchema));
  const std::string checksum = TextOf(object, "checksum");
  object.erase("checksum");
  if (checksum != Checksum(object)) return Broken("the checksum does not fit");
  const auto address = PciAddress::Parse(TextOf(object, "address"));
  if (!address.ok()) return Broken(std::string(address.status().message()));
  auto members = MembersOf(object);
  if (!members.ok()) return members.status();
  Record record{.address = *address,
                .boot_id = TextOf(object, "boot_id"),
                .members = *std::move(members),
                .driver = TextOf(object, "driver"),
                .driver_override = TextOf(object, "driver_override"),
                .to = TextOf(object, "to"),
                .step = TextOf(object, "step")};
  const json group = object.value("group", json());
  const json releasing = object.value("releasing", json());
  if (!ParseId(TextOf(object, "id"), record) || !group.is_number_integer() ||
      !releasing.is_boolean()) {
    return Broken("id, group or releasing is missing");
  }
  record.group = group.get<int>();
  record.releasing = releasing.get<bool>();
  const json d3cold = object.value("d3cold_allowed", json());
  if (d3cold.is_boolean()) record.d3cold_allowed = d3cold.get<bool>();
  const json vfs = object.value("vfs", json());
  if (vfs.is_number_integer()) record.vfs = vfs.get<int>();
  const json autoprobe = object.value("vfs_autoprobe", json());
  if (autoprobe.is_boolean()) record.vfs_autoprobe = autoprobe.get<bool>();
  const json vgpu = object.value("vgpu_type", json());
  if (vgpu.is_number_integer()) record.vgpu_type = vgpu.get<int>();
  record.vgpu_name = TextOf(object, "vgpu_name");
  return record;
}

}  // namespace vfio_agent
