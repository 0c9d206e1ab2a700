#include "deviceplugin/offer/device_list.h"

#include <algorithm>

namespace vfio_agent {
namespace {

bool TellsNuma(const Offer& offer) {
  return offer.numa && std::ranges::all_of(offer.units, [](const OfferedUnit& unit) {
           return unit.numa_node.value_or(-1) >= 0;
         });
}

}  // namespace

v1beta1::ListAndWatchResponse MakeDeviceList(const Offer& offer) {
  const bool tells_numa = TellsNuma(offer);
  v1beta1::ListAndWatchResponse list;
  list.mutable_devices()->Reserve(static_cast<int>(offer.units.size()));
  for (const OfferedUnit& unit : offer.units) {
    v1beta1::Device& device = *list.add_devices();
    device.set_id(unit.id);
    device.set_health(unit.healthy ? kHealthy : kUnhealthy);
    if (tells_numa) device.mutable_topology()->add_nodes()->set_id(*unit.numa_node);
  }
  return list;
}

bool SameDeviceList(const Offer& a, const Offer& b) {
  const bool tells_numa = TellsNuma(a);
  if (tells_numa != TellsNuma(b)) return false;
  return std::ranges::equal(a.units, b.units, [&](const OfferedUnit& x, const OfferedUnit& y) {
    return x.id == y.id && x.healthy == y.healthy && (!tells_numa || x.numa_node == y.numa_node);
  });
}

}  // namespace vfio_agent
