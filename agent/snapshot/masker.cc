#include "agent/snapshot/masker.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

bool IsHex(char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); }

// 'x' is a digit, '-' one of those that systemd and udev write. Longest first.
constexpr std::array<std::string_view, 4> kShapes = {
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",  // of a container
    "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",                              // a UUID
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",  // the same, and static pods'
    "xx:xx:xx:xx:xx:xx",
};

bool HasShape(std::string_view text, std::string_view shape) {
  if (text.size() < shape.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool fits = shape[i] == 'x'   ? IsHex(text[i])
                      : shape[i] == '-' ? text[i] == '-' || text[i] == '_'
                                        : text[i] == shape[i];
    if (!fits) return false;
  }
  // Part of something longer is something else: a device's modalias, a hardware address of eight.
  return text.size() == shape.size() || (!IsHex(text[shape.size()]) && text[shape.size()] != ':');
}

bool IsMasked(std::string_view word) {
  constexpr std::string_view kMasked = "masked-";
  if (!word.starts_with(kMasked) || word.size() < kMasked.size() + 4) return false;
  word.remove_prefix(kMasked.size());
  return word.find_first_not_of("0123456789") == std::string_view::npos;
}

size_t ShapeAt(std::string_view text) {
  const auto found = std::ranges::find_if(
      kShapes, [text](std::string_view shape) { return HasShape(text, shape); });
  return found == kShapes.end() ? 0 : found->size();
}

}  // namespace

size_t Masker::Number(const std::string& key) {
  const auto [entry, fresh] = numbers_.try_emplace(key, 0);
  const size_t kind = key.front() == 'w' ? 0 : key.size();
  if (fresh) entry->second = ++last_[kind];
  return entry->second;
}

std::string Masker::Word(std::string_view word) {
  if (IsMasked(word)) return std::string(word);
  return absl::StrFormat("masked-%04d", Number("w" + std::string(word)));
}

std::string Masker::Hex(std::string_view digits) {
  std::string bare;
  std::ranges::copy_if(digits, std::back_inserter(bare), IsHex);
  bare = absl::AsciiStrToLower(bare);
  if (bare.find_first_not_of(bare.empty() ? '0' : bare.front()) == std::string::npos &&
      (bare.empty() || bare.front() == '0' || bare.front() == 'f')) {
    return std::string(digits);
  }
  std::string number = absl::StrFormat("%0*x", static_cast<int>(bare.size()), Number("h" + bare));
  number.erase(0, number.size() - bare.size());
  std::string masked(digits);
  auto next = number.begin();
  for (char& c : masked) {
    if (IsHex(c)) c = *next++;
  }
  return masked;
}

std::string Masker::Ids(std::string_view text) {
  std::string masked;
  while (!text.empty()) {
    const bool inside = !masked.empty() && IsHex(masked.back());
    const size_t size = inside ? 0 : ShapeAt(text);
    masked += size == 0 ? std::string(1, text.front()) : Hex(text.substr(0, size));
    text.remove_prefix(std::max(size, size_t{1}));
  }
  return masked;
}

}  // namespace vfio_agent
