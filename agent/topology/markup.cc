#include "agent/topology/markup.h"

#include "absl/strings/str_replace.h"
#include "agent/kubevirt/kubevirt.h"

namespace vfio_agent {

std::string XmlText(std::string_view text) {
  return absl::StrReplaceAll(
      Printable(text),
      {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&apos;"}});
}

std::string XmlComment(std::string_view text) {
  std::string comment = absl::StrReplaceAll(Printable(text), {{"--", "- -"}});
  // "---" is "- --" after one turn.
  while (comment.find("--") != std::string::npos) {
    comment = absl::StrReplaceAll(comment, {{"--", "- -"}});
  }
  return comment;
}

}  // namespace vfio_agent
