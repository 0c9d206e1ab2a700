#include "agent/cluster/api_json.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// A Pod, the deepest of the objects that people know, has about 15.
constexpr int kDepth = 64;
constexpr size_t kNameBytes = 253;

// Each takes some 16 to 100 bytes of memory. What etcd keeps has far fewer.
constexpr size_t kValues = 200'000;

// Looked at before the parser does: what it builds must be taken down again.
absl::Status Measure(std::string_view text) {
  int depth = 0;
  size_t values = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDepth) return absl::DataLossError("JSON that is nested too deep");
      ++values;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',') {
      ++values;
    }
    if (values > kValues) return absl::DataLossError("JSON of too many values");
  }
  return absl::OkStatus();
}

bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

}  // namespace

absl::StatusOr<ApiJson> ParseApiJson(std::string_view text) {
  if (text.size() > kApiBytes) return absl::DataLossError("more than 4 MiB of JSON");
  RETURN_IF_ERROR(Measure(text));
  ApiJson json = ApiJson::parse(text, nullptr, false);
  if (json.is_discarded()) return absl::DataLossError("no JSON");
  if (!json.is_object()) return absl::DataLossError("JSON that is no object");
  return json;
}

const ApiJson* At(const ApiJson& json, std::initializer_list<const char*> path) {
  const ApiJson* at = &json;
  for (const char* key : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::string TextAt(const ApiJson& json, std::initializer_list<const char*> path) {
  const ApiJson* const at = At(json, path);
  return at != nullptr && at->is_string() ? at->get<std::string>() : "";
}

int NumberAt(const ApiJson& json, std::initializer_list<const char*> path) {
  const ApiJson* const at = At(json, path);
  if (at == nullptr || !at->is_number_integer()) return 0;
  // Beyond 2^63 a number is read as another type, and would come out negative.
  if (at->is_number_unsigned() && at->get<uint64_t>() > std::numeric_limits<int>::max()) return 0;
  const auto number = at->get<int64_t>();
  return number < 0 || number > std::numeric_limits<int>::max() ? 0 : static_cast<int>(number);
}

std::string DumpApiJson(const ApiJson& json) {
  return json.dump(-1, ' ', false, ApiJson::error_handler_t::replace);
}

std::string CutText(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  // The bytes after a character's first are 10xxxxxx.
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xc0U) == 0x80U) --limit;
  return std::string(text.substr(0, limit));
}

bool IsObjectName(std::string_view name) {
  if (name.empty() || name.size() > kNameBytes) return false;
  if (!IsLowerOrDigit(name.front()) || !IsLowerOrDigit(name.back())) return false;
  if (name.find("..") != std::string_view::npos) return false;
  return std::ranges::all_of(name,
                             [](char c) { return IsLowerOrDigit(c) || c == '-' || c == '.'; });
}

}  // namespace vfio_agent
