#include "agent/mode/mode_words.h"

namespace vfio_agent {

std::string RemedyForWait(const ModeStatus& mode) {
  if (mode.reason.starts_with(kWaitsFor)) {
    return "end what is named, or move it to another node: nothing is evicted; or set the mode "
           "back";
  }
  if (mode.state == "blocked") {
    return "see the line unbind_stuck, or the failed job's own, of that group; dmesg | tail";
  }
  return "it goes on by itself; vfio-agent status --watch shows how far it is";
}

}  // namespace vfio_agent
