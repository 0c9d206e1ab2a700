// CDI specs: what a runtime that asks the kubelet for a sandbox's devices (Kata) finds under
// "<resource>=<unit>". Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "deviceplugin/offer/offer.h"

namespace vfio_agent {

// OK where a resource's name is a kind of CDI as well: a vendor and a class that begin with a
// letter and end with a letter or digit. InvalidArgument says what is wrong.
absl::Status CheckCdiKind(std::string_view resource);

// "vfio-agent-nvidia.com-TESLA_T4.json". A name that CheckCdiKind() takes leads nowhere else.
std::string CdiFileName(std::string_view resource);

// The spec of one resource; "" where it would have no device, which no reader accepts.
//
// Each unit has its group's node or, where there is none, its cdevs, and never /dev/vfio/vfio: the
// runtime takes every node for a device. A unit that is listed only because a pod may have it still
// is left out: its nodes are those of an earlier picture, and may be another's by now.
std::string CdiText(const Offer& offer);

struct CdiSpecs {
  std::map<std::string, std::string> files;  // text by file name
  std::vector<std::string> problems;         // resources that can have none, and why
};
CdiSpecs MakeCdiSpecs(const std::vector<Offer>& offers);

}  // namespace vfio_agent
