// PluginNode: resources with a loop that serves them, and a kubelet that is not started yet.
#pragma once

#include <set>
#include <string>

#include "test/deviceplugin/support.h"
#include "test/kubelet/fake_kubelet.h"

namespace vfio_agent {

inline constexpr char kGpu[] = "nvidia.com/GA100_A100_PCIE_40GB";

struct PluginNode {
  // One resource, kGpu, with so many units.
  explicit PluginNode(FakeKubelet::Options options = {}, int units = 1)
      : kubelet([&] {
          options.dir = dir.path();
          return options;
        }()),
        count(static_cast<size_t>(units)) {
    Offer offer = TestOffer(kGpu, {});
    for (int i = 0; i < units; ++i) {
      offer.units.push_back(TestUnit("0000:" + std::to_string(11 + i) + ":00.0", 0));
    }
    tree.AddAll(offer);
    loop.plugins().Set({offer});
  }

  // Until the kubelet has every unit as healthy.
  bool Serves() {
    return loop.RunUntil([&] {
      return loop.plugins().AllRegistered() &&
             kubelet.WaitHealthy(kGpu, count, absl::ZeroDuration());
    });
  }
  // The kubelet drops the newest stream, for the n-th time. Both sides have noticed on return: up
  // to 1.36 a kubelet that is late takes the next plugin down.
  bool Loses(int n) {
    kubelet.CancelList(kGpu);
    return loop.RunUntil([&] {
      return loop.Count(PluginEvent::Kind::kListClosed) == n &&
             kubelet.Resources().at(kGpu).stopped;
    });
  }
  std::string Socket() { return loop.plugins().Status()[0].socket; }
  int Registrations() { return kubelet.Resources().at(kGpu).registrations; }

  TempDir dir;
  UnitTree tree;
  FakeKubelet kubelet;
  size_t count = 0;
  PluginLoop loop{dir.path(), tree.tree()};
};

}  // namespace vfio_agent
