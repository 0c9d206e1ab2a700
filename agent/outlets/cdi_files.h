// CdiFiles: keeps a directory of CDI specs like the offers.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "deviceplugin/offer/offer.h"

namespace vfio_agent {

class CdiFiles {
 public:
  // Gives each resource its file in `dir`, where the content is another than it should be, and
  // removes those of resources that have none any more: regular files named "vfio-agent-*.json",
  // nothing else. A directory that is named no longer is cleared of them as well; "" is none.
  //
  // What went wrong, or cannot be: only what the last call has not said.
  std::vector<std::string> Update(const std::string& dir, const std::vector<Offer>& offers);

 private:
  std::string dir_;
  std::vector<std::string> told_;
};

}  // namespace vfio_agent
