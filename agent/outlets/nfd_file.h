// NfdFile: keeps the file "vfio-agent" in NFD's directory like the offers.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agent/outlets/nfd.h"

namespace vfio_agent {

class NfdFile {
 public:
  struct Clocks {
    absl::Time steady;  // for pauses
    absl::Time wall;    // for what is written
  };

  // Writes the file where its labels are others, where half of its time is over and where somebody
  // has changed or removed it. Not within two seconds of the last time: NFD looks away for a second
  // after it has seen a change, so that of two in a row the second would be missed. due() is then
  // when to call again.
  //
  // A directory that is named no longer loses its file; "" is none. What went wrong, or cannot be:
  // only what the last call has not said.
  std::vector<std::string> Update(const std::string& dir, const NfdLabels& labels,
                                  absl::Duration validity, Clocks now);

  absl::Time due() const { return due_; }

 private:
  bool IsCurrent(const std::string& path, const std::string& labels, absl::Duration validity,
                 absl::Time wall) const;
  absl::Status Write(const std::string& labels, absl::Duration validity, Clocks now);

  std::string dir_;
  std::string labels_;  // in the file, with expiry_
  absl::Time expiry_ = absl::InfinitePast();
  absl::Time written_ = absl::InfinitePast();
  absl::Time due_ = absl::InfiniteFuture();
  std::vector<std::string> told_;
};

}  // namespace vfio_agent
