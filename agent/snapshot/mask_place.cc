#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "agent/snapshot/mask_text.h"
#include "sysfs/device/mdev.h"

namespace vfio_agent {
namespace {

constexpr std::string_view kPools = "proc/spl/kstat/zfs/";

// Here the kernel and this program give the names; anywhere else the owner of the node does.
constexpr std::array kOurs =
    std::to_array<std::string_view>({"sys/", "proc/", "lib/modules/", "usr/lib/modules/",
                                     "etc/vfio-agent/", "usr/share/misc/", "var/lib/vfio-agent/"});

bool IsOurs(std::string_view path) {
  return std::ranges::any_of(kOurs, [path](std::string_view dir) { return path.starts_with(dir); });
}

// Names that udev gives by a hardware address: "enx0c42a1030065".
constexpr std::array<std::string_view, 5> kByAddress = {"enx", "wlx", "ibx", "rocex", "iwx"};

std::string MaskPart(const std::string& part, Masker& masker) {
  // By a uuid of its own the program knows a mediated device for its own; it says no more than the
  // parent's address.
  if (HasOwnMark(part)) return part;
  for (const std::string_view prefix : kByAddress) {
    const std::string_view rest =
        std::string_view(part).substr(std::min(part.size(), prefix.size()));
    const bool digits = std::ranges::all_of(
        rest, [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); });
    if (part.starts_with(prefix) && digits && (rest.size() == 12 || rest.size() == 16)) {
      return std::string(prefix) + masker.Hex(rest);
    }
  }
  return masker.Ids(part);
}

std::string_view ParentOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string LastOf(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

// A word of a message that was about `path`, with the punctuation around it.
std::string MaskWord(std::string_view word, std::string_view path, Masker& masker) {
  constexpr std::string_view kAround = "'\"(),.:;";
  const size_t start = std::min(word.find_first_not_of(kAround), word.size());
  const size_t end = std::max(word.find_last_not_of(kAround) + 1, start);
  const std::string before(word.substr(0, start)), after(word.substr(end));
  word = word.substr(start, end - start);
  if (word.starts_with('/')) return before + "/" + MaskPlace(word.substr(1), masker) + after;
  if (!word.empty() && word == LastOf(path)) {
    return before + LastOf(MaskPlace(path, masker)) + after;
  }
  return before + (IsOurs(word) ? MaskPlace(word, masker) : MaskParts(word, masker)) + after;
}

std::string MaskLoose(std::string_view text, std::string_view path, Masker& masker) {
  std::string masked;
  for (const auto& word : absl::StrSplit(std::string(text), ' ')) {
    masked += " " + MaskWord(std::string(word), path, masker);
  }
  return masked.substr(1);
}

}  // namespace

std::string MaskParts(std::string_view path, Masker& masker) {
  std::string masked;
  for (const auto& view : absl::StrSplit(std::string(path), '/')) {
    masked += "/" + MaskPart(std::string(view), masker);
  }
  return masked.substr(1);
}

std::string MaskPlace(std::string_view path, Masker& masker) {
  if (!path.starts_with(kPools)) {
    return IsOurs(path) ? MaskParts(path, masker) : MaskPath(path, masker);
  }
  // Statistics of ZFS itself are beside its pools, and no less masked.
  const std::string_view rest = path.substr(kPools.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  return std::string(kPools) + masker.Word(rest.substr(0, slash)) +
         MaskParts(rest.substr(slash), masker);
}

std::string MaskTarget(std::string_view link, std::string_view target, Masker& masker) {
  return IsOurs(link) ? MaskParts(target, masker) : MaskPath(target, masker);
}

std::string MaskMessage(std::string_view text, std::string_view path, Masker& masker) {
  for (std::string_view place = path; place.find('/') != std::string_view::npos;
       place = ParentOf(place)) {
    const size_t at = text.find(place);
    if (at == std::string_view::npos) continue;
    return MaskLoose(text.substr(0, at), path, masker) + MaskPlace(place, masker) +
           MaskMessage(text.substr(at + place.size()), path, masker);
  }
  return MaskLoose(text, path, masker);
}

}  // namespace vfio_agent
