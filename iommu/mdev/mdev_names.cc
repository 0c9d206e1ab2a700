#include <algorithm>
#include <charconv>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "iommu/mdev/mdev.h"
#include "iommu/policy/naming.h"

namespace vfio_agent {
namespace {

// Of the 14 bits that the uuid has for it.
constexpr int kMostIndices = 1 << 14;
constexpr unsigned kVersionAndMark = 0x8f10;  // version 8; the rest tells ours from others'
constexpr unsigned kVariant = 0x8000;

// FNV-1a, folded to the 48 bits that are left: types of one parent are few.
uint64_t HashOf(std::string_view type) {
  uint64_t hash = 14695981039346656037ULL;
  for (const char c : type) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  return (hash ^ (hash >> 48)) & 0xffffffffffffULL;
}

bool Space(char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); }
bool Alnum(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }

std::string TrimToAlnum(std::string name) {
  while (!name.empty() && !Alnum(name.back())) name.pop_back();
  name.erase(name.begin(), std::ranges::find_if(name, Alnum));
  return name;
}

}  // namespace

std::string MdevUuid(const PciAddress& parent, std::string_view type, int index) {
  const unsigned place =
      unsigned{parent.bus} << 8 | unsigned{parent.device} << 3 | unsigned{parent.function};
  return absl::StrFormat("%08x-%04x-%04x-%04x-%012x", parent.domain, place, kVersionAndMark,
                         kVariant | static_cast<unsigned>(index), HashOf(type));
}

std::string FreeMdevUuid(const PciAddress& parent, std::string_view type,
                         const std::vector<std::string>& taken) {
  for (int index = 0; index < kMostIndices; ++index) {
    std::string uuid = MdevUuid(parent, type, index);
    if (!std::ranges::count(taken, uuid)) return uuid;
  }
  return "";
}

bool IsOwnMdev(const MdevInstance& mdev) {
  if (!mdev.parent || mdev.uuid.size() < 23) return false;
  unsigned word = 0;
  const char* const begin = mdev.uuid.data() + 19;
  if (std::from_chars(begin, begin + 4, word, 16).ptr != begin + 4) return false;
  const int index = static_cast<int>(word & (kMostIndices - 1));
  return mdev.uuid == MdevUuid(*mdev.parent, mdev.type, index);
}

std::string MdevTypeResourceName(std::string_view type) {
  std::string name;
  bool in_space = false;
  for (const char c : type) {
    if (!Space(c)) {
      if (c == '/') name += '_';
      if (Alnum(c) || c == '-' || c == '_' || c == '.') name += c;
    } else if (!in_space) {
      name += '_';
    }
    in_space = Space(c);
  }
  return TrimToAlnum(TrimToAlnum(std::move(name)).substr(0, 63));
}

std::string MdevTypeName(const MdevType& type) { return type.name.empty() ? type.id : type.name; }

std::string TypeNames(const MdevParent& parent) {
  return absl::StrJoin(parent.types, ", ", [](std::string* out, const MdevType& type) {
    out->append(MdevTypeName(type));
  });
}

std::string MdevResourceName(const MdevRule& rule, const MdevType& type) {
  return absl::StrFormat("%s/%s", rule.domain, MdevTypeResourceName(MdevTypeName(type)));
}

Resource EmptyResource(const MdevRule& rule, const std::string& name, const PciDevice& card) {
  return {.name = name, .vendor = card.vendor, .device = card.device, .serve = rule.serve};
}

std::string OtherwiseServed(const Resource& resource) {
  return absl::StrFormat(
      "the type would be in the resource '%s', which another entry has with "
      "`serve: %s`",
      resource.name, Name(resource.serve));
}

std::string MdevVariable(std::string_view resource) { return "MDEV_" + ResourceVariable(resource); }

const MdevRule* FindParentRule(const std::vector<MdevRule>& rules, const PciDevice& device) {
  if (device.IsBridge()) return nullptr;
  const auto found = std::ranges::find_if(
      rules, [&device](const MdevRule& rule) { return MatchesAny(rule.parents, device); });
  return found == rules.end() ? nullptr : &*found;
}

const MdevRule* FindMdevRule(const Policy& policy, const PciDevice& device) {
  return FindParentRule(policy.mdev, device);
}

}  // namespace vfio_agent
