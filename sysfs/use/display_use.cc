#include "sysfs/use/display_use.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "sysfs/paths.h"
#include "sysfs/proc_text.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

// Names under which drivers/firmware/sysfb and the drivers of its devices reserve the memory.
constexpr std::array<std::string_view, 8> kFrameBuffers = {
    "efifb",     "vesafb", "simplefb", "simple-framebuffer",
    "simpledrm", "efidrm", "vesadrm",  "BOOTFB"};
constexpr std::string_view kFrameBufferConsole = "frame buffer device";

struct Range {
  uint64_t first = 0;
  uint64_t last = 0;
};

std::string_view WithoutHexMark(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  return text;
}

// Lines "start end flags"; unused ones are zero.
std::vector<Range> ReadRegions(const Tree& tree, const PciAddress& address) {
  std::vector<Range> regions;
  const absl::StatusOr<std::string> text = tree.ReadText(DeviceDir(address) + "/resource");
  if (!text.ok()) return regions;
  for (const std::string_view line : Lines(*text)) {
    const std::vector<std::string_view> field = Fields(line);
    if (field.size() < 2) continue;
    const auto first = ParseNumber(WithoutHexMark(field[0]), 16);
    const auto last = ParseNumber(WithoutHexMark(field[1]), 16);
    if (first && last && *last > *first) regions.push_back({*first, *last});
  }
  return regions;
}

std::string Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  const size_t last = text.find_last_not_of(' ');
  return first == std::string_view::npos ? "" : std::string(text.substr(first, last - first + 1));
}

// The frame buffer console draws into fb0 as long as nobody has mapped it elsewhere (con2fbmap).
std::string FindConsole(const Tree& tree) {
  const absl::StatusOr<std::vector<std::string>> names = tree.List(kConsolesDir);
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    const std::string dir = absl::StrFormat("%s/%s", kConsolesDir, name);
    const absl::StatusOr<std::string> driver = tree.ReadText(dir + "/name");
    const absl::StatusOr<std::string> bound = tree.ReadText(dir + "/bind");
    if (driver.ok() && driver->find(kFrameBufferConsole) != std::string::npos && bound.ok() &&
        *bound == "1") {
      return name;
    }
  }
  return "";
}

}  // namespace

// "    e0000000-e02fffff : efifb"; the indentation says what lies within what.
std::vector<MemoryClaim> ParseIomem(std::string_view iomem) {
  std::vector<MemoryClaim> claims;
  for (const std::string_view line : Lines(iomem)) {
    const size_t colon = line.find(" : ");
    if (colon == std::string_view::npos) continue;
    const std::string owner = Trim(line.substr(colon + 3));
    if (std::ranges::count(kFrameBuffers, std::string_view(owner)) == 0) continue;
    const std::string range = Trim(line.substr(0, colon));
    const size_t dash = range.find('-');
    if (dash == std::string::npos) continue;
    const auto first = ParseNumber(std::string_view(range).substr(0, dash), 16);
    const auto last = ParseNumber(std::string_view(range).substr(dash + 1), 16);
    if (!first || !last || *last <= *first) continue;
    claims.push_back({.first = *first, .last = *last, .owner = owner});
  }
  return claims;
}

HostDisplay ReadHostDisplay(const Tree& tree) { return {.console = FindConsole(tree)}; }

std::vector<MemoryClaim> ReadMemoryClaims(const Tree& tree) {
  const absl::StatusOr<std::string> iomem = ReadProcText(tree, kIomem);
  return iomem.ok() ? ParseIomem(*iomem) : std::vector<MemoryClaim>();
}

std::vector<Use> ClaimUses(const Tree& tree, const PciAddress& address,
                           const std::vector<MemoryClaim>& claims) {
  std::vector<Use> uses;
  if (claims.empty()) return uses;
  const std::vector<Range> regions = ReadRegions(tree, address);
  // The outermost is enough: BOOTFB and efifb stand for the same memory.
  for (const MemoryClaim& claim : claims) {
    const bool inside = std::ranges::any_of(regions, [&claim](const Range& region) {
      return claim.first <= region.last && claim.last >= region.first;
    });
    if (!inside) continue;
    uses.push_back(
        {.kind = UseKind::kDisplay,
         .text = absl::StrFormat("has its memory %x-%x held by %s, the boot console's frame buffer",
                                 claim.first, claim.last, claim.owner),
         .remedy = "make another card the boot display, or boot with video=efifb:off (where that "
                   "is not enough: initcall_blacklist=sysfb_init)"});
    return uses;
  }
  return uses;
}

std::vector<Use> ConsoleUses(const Below& below, const HostDisplay& display) {
  std::vector<Use> uses;
  for (const std::string& dir : below.framebuffers) {
    if (NameOf(dir) != "fb0" || display.console.empty()) continue;
    uses.push_back({.kind = UseKind::kDisplay,
                    .text = "carries fb0, which shows the console",
                    .remedy = absl::StrFormat("make another card the boot display, or: echo 0 > "
                                              "/%s/%s/bind",
                                              kConsolesDir, display.console)});
  }
  return uses;
}

}  // namespace vfio_agent
