#include "agent/mode/mode_file.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "agent/files.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

using nlohmann::json;

constexpr char kSchema[] = "vfio-agent/mode/v1";
constexpr size_t kLargest = 4096;

std::optional<Mode> ModeIn(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return FindMode(found->get<std::string>());
}

}  // namespace

std::string ModeMemoryToText(const ModeMemory& memory) {
  json object = {{"schema", kSchema}, {"mode", std::string(Name(memory.mode))}};
  if (memory.target) object["target"] = std::string(Name(*memory.target));
  return object.dump() + "\n";
}

absl::StatusOr<ModeMemory> ParseModeMemory(std::string_view text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return absl::DataLossError("no JSON object");
  const auto schema = object.find("schema");
  if (schema == object.end() || *schema != kSchema) {
    return absl::DataLossError(absl::StrFormat("not of the schema %s", kSchema));
  }
  const std::optional<Mode> mode = ModeIn(object, "mode");
  if (!mode) return absl::DataLossError("mode: none that is known");
  const std::optional<Mode> target = ModeIn(object, "target");
  if (!target && object.contains("target")) {
    return absl::DataLossError("target: no mode that is known");
  }
  return ModeMemory{.mode = *mode, .target = target};
}

absl::StatusOr<std::optional<ModeMemory>> ModeFile::Read() const {
  const absl::StatusOr<std::string> text = ReadSmallFile(path_, kLargest);
  if (absl::IsNotFound(text.status())) return std::optional<ModeMemory>();
  if (!text.ok()) return text.status();
  const absl::StatusOr<ModeMemory> memory = ParseModeMemory(*text);
  if (!memory.ok()) return Annotate(memory.status(), path_);
  return std::optional<ModeMemory>(*memory);
}

absl::Status ModeFile::Write(const ModeMemory& memory) const {
  RETURN_IF_ERROR(MakeDirectories(dir_));
  return ReplaceFile(path_, ModeMemoryToText(memory));
}

}  // namespace vfio_agent
