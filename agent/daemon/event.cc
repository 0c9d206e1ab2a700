#include "agent/daemon/event.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

bool Plain(std::string_view value) {
  return !value.empty() && std::ranges::all_of(value, [](unsigned char c) {
    return c > ' ' && c < 0x7f && c != '"' && c != '=' && c != '\\';
  });
}

// What a terminal would obey or not show: control characters beyond ASCII's first, marks without
// width, and those that turn the direction of writing.
constexpr std::array<std::pair<unsigned, unsigned>, 5> kUnseen = {
    {{0x7f, 0x9f}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x2069}, {0xfeff, 0xfeff}}};

bool IsUnseen(unsigned point) {
  return std::ranges::any_of(kUnseen, [point](const auto& range) {
    return point >= range.first && point <= range.second;
  });
}

// `text` is UTF-8. Escapes what IsUnseen() says, which has three bytes at most.
std::string EscapeUnseen(std::string_view text) {
  std::string escaped;
  for (size_t at = 0; at < text.size();) {
    const auto byte = [&](size_t i) -> unsigned {
      return static_cast<unsigned char>(text[at + i]);
    };
    const size_t length = byte(0) < 0x80 ? 1 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
    const size_t whole = std::min(length, text.size() - at);
    unsigned point = whole == 1 ? byte(0) : byte(0) & (0xff >> (length + 1));
    for (size_t i = 1; i < whole; ++i) point = point << 6 | (byte(i) & 0x3f);
    escaped +=
        IsUnseen(point) ? absl::StrFormat("\\u%04x", point) : std::string(text.substr(at, whole));
    at += whole;
  }
  return escaped;
}

std::string JsonString(const std::string& value) {
  using Json = nlohmann::json;
  return EscapeUnseen(Json(value).dump(-1, ' ', false, Json::error_handler_t::replace));
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
