// ParseModelNames: only asked ids are named, with words that stand in the file (what could steer
// a terminal as '?'), and the names survive being written as a pci.ids file.
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "iommu/policy/naming.h"
#include "test/fuzz/require.h"

namespace vfio_agent {
namespace {

const std::set<DeviceId>& Ids() {
  static const std::set<DeviceId> ids = {{0x10de, 0x2330}, {0x10de, 0x2204}, {0x10de, 0x0000},
                                         {0x1002, 0x74a1}, {0x0000, 0x0000}, {0xffff, 0xffff}};
  return ids;
}

// The file as a name may show it, on one line.
std::string Shown(std::string text) {
  for (char& c : text) {
    const bool control = c == '\x7f' || (c >= '\0' && c < ' ');
    if (control) c = c >= '\t' && c <= '\r' ? ' ' : '?';
  }
  return text;
}

bool IsSpace(char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); }

std::string Write(const ModelNames& names) {
  std::string text = "# names\n";
  for (const auto& [id, name] : names) {
    text += absl::StrFormat("%04x  Vendor\n\t%04x  %s\n", id.first, id.second, name);
    text += "\t\t10de 2330  a subsystem is no model\n";
  }
  return text;
}

ModelNames Parse(const std::string& text) {
  std::istringstream stream(text);
  return ParseModelNames(stream, Ids());
}

void Check(const std::string& text) {
  const ModelNames names = Parse(text);
  const std::string shown = Shown(text);
  for (const auto& [id, name] : names) {
    Require(Ids().contains(id), "only what was asked for is named");
    Require(shown.find(name) != std::string::npos, "a name stands in the file", name);
    Require(Shown(name) == name, "a name has no control characters", name);
    Require(name.empty() || (!IsSpace(name.front()) && !IsSpace(name.back())),
            "a name has no white space around it", name);
    Require(text.find(absl::StrFormat("\t%04x", id.second)) != std::string::npos ||
                text.find_first_of("ABCDEF") != std::string::npos,
            "the id of a named model stands in the file", name);
  }
  Require(Parse(Write(names)) == names, "names survive being written and read");
}

}  // namespace
}  // namespace vfio_agent

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vfio_agent::Check(std::string(vfio_agent::Text(data, size)));
  return 0;
}
