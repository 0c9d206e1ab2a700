#include "deviceplugin/offer/published.h"

#include <thread>

#include "catch2/catch.hpp"
#include "test/deviceplugin/support.h"

namespace vfio_agent {
namespace {

TEST_CASE("listeners hear of what the kubelet would see, until they are removed",
          "[deviceplugin]") {
  Published published;
  CHECK(published.Get()->offer().units.empty());
  int heard = 0;
  const int token = published.Add([&] { ++heard; });
  const Offer offer = TestOffer("nvidia.com/X", {TestUnit("0000:11:00.0")});
  published.Set(offer);
  CHECK(heard == 1);
  Offer changed = offer;
  changed.units[0].nodes.clear();
  published.Set(changed);
  CHECK(heard == 1);
  CHECK(published.Get()->offer() == changed);
  published.Remove(token);
  published.Set(TestOffer("nvidia.com/X", {}));
  CHECK(heard == 1);
}

TEST_CASE("offers may be read, replaced and listened for at once", "[deviceplugin]") {
  Published published;
  std::jthread writer([&] {
    for (int i = 0; i < 2000; ++i) {
      const OfferedUnit unit = TestUnit(i % 2 == 0 ? "0000:11:00.0" : "0000:12:00.0");
      published.Set(TestOffer(unit.id, {unit}));
    }
  });
  std::jthread listener([&] {
    for (int i = 0; i < 500; ++i) published.Remove(published.Add([] {}));
  });
  int torn = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto offer = published.Get();
    if (offer->offer().units.empty()) continue;
    if (offer->offer().resource != offer->unit(0).id || !offer->Find(offer->unit(0).id)) ++torn;
  }
  CHECK(torn == 0);
}

}  // namespace
}  // namespace vfio_agent
