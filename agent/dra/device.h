// DraDevice: a unit as a device of dynamic resource allocation, which claims are for. A value.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "agent/text/json.h"
#include "deviceplugin/offer/offer.h"

namespace vfio_agent {

using DraAttribute = std::variant<std::string, int64_t, bool>;

struct DraDevice {
  std::string name;      // "0000-3b-00-0", or a mediated device's uuid: a DNS label
  std::string resource;  // whose unit it is
  std::string unit;      // the unit's id
  // Names without a domain are in the driver's own.
  std::map<std::string, DraAttribute> attributes;
  std::map<std::string, uint64_t> capacity;  // bytes
  // Groups of the unit that other devices are of, too: only one of them can be allocated.
  std::vector<int> shared_groups;
  // The code of what keeps it from new claims, and the whole sentence; empty: nothing.
  std::string taint;
  std::string reason;
  bool operator==(const DraDevice&) const = default;
};

// "0000:3b:00.0" -> "0000-3b-00-0".
std::string DraDeviceName(std::string_view unit);

// The devices of `offers`, which are those with Serve::kDra: all units but what is listed only
// because a pod may have it still. Sorted by name.
std::vector<DraDevice> MakeDraDevices(const std::vector<Offer>& offers, const Plan& plan,
                                      const NodeFacts& facts, const ModelNames& names);

// {"pciBusID": {"string": "0000:3b:00.0"}, …}, as slices and metadata files have it.
Json AttributesToJson(const DraDevice& device);

}  // namespace vfio_agent
