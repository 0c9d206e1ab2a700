// UseReader: reads who uses what, which can take for ever on a node that is not well.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "sysfs/use/use.h"

namespace vfio_agent {

// Who has a group open then.
inline constexpr char kEndlessLook[] = "a process perhaps: looking does not return";

// A look at a descriptor of a file server that is gone does not return, and neither need NVIDIA's
// driver when it is asked for a minor number. So a child looks. While one is stuck, or where it
// ends without an answer, every function that is asked for counts as used, and every group as
// open: not knowing is not "nobody". One thread.
class UseReader {
 public:
  UseFacts Read(const Tree& tree, const NodeFacts& facts, const std::vector<PciAddress>& devices,
                const std::vector<int>& groups, absl::Duration patience);

  // Whether the last Read() was answered.
  bool answered() const { return answered_; }

 private:
  bool answered_ = true;
  pid_t stuck_ = 0;
};

// How a child tells its parent; the text is no format for others. False for text that is none.
std::string UseToText(const UseFacts& use);
bool UseFromText(std::string_view text, UseFacts& use);

}  // namespace vfio_agent
