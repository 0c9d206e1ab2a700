#include "agent/daemon/event.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

bool Plain(std::string_view value) {
  return !value.empty() && std::ranges::all_of(value, [](char c) {
    return c > ' ' && c != '"' && c != '=' && c != '\\' && c != 0x7f;
  });
}

std::string JsonString(const std::string& value) {
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Event& Event::With(std::string key, std::string value) {
  if (!value.empty()) fields.emplace_back(std::move(key), std::move(value));
  return *this;
}

std::string ToText(const Event& event) {
  std::string line = "event=" + event.name;
  for (const auto& [key, value] : event.fields) {
    line += absl::StrFormat(" %s=%s", key, Plain(value) ? value : JsonString(value));
  }
  return line;
}

std::string ToJsonFields(const Event& event) {
  std::string line = "\"event\":" + JsonString(event.name);
  for (const auto& [key, value] : event.fields) {
    line += absl::StrFormat(",%s:%s", JsonString(key), JsonString(value));
  }
  return line;
}

}  // namespace vfio_agent
