#include <iostream>

#include "agent/commands/commands.h"
#include "agent/exit_code.h"
#include "agent/text/terminal.h"
#include "agent/topology/guest.h"
#include "agent/topology/render.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

int PrintGuest(const Invocation& invocation, const Picture& picture, const Topology& topology) {
  const bool named = !invocation.arguments.empty();
  const std::vector<PciAddress> devices = GuestDevices(topology, picture.plan, named);
  if (devices.empty()) {
    PrintError("the configuration selects nothing here; name the devices that the guest gets");
    return kExitUsage;
  }
  if (invocation.guest == "kubevirt") {
    PrintText(KubevirtLayoutText(topology, picture.plan, picture.facts, devices));
    return kExitDone;
  }
  const absl::StatusOr<GuestLayout> layout = PlanGuest(picture.facts, topology.numa, devices);
  if (!layout.ok()) {
    PrintError(Message(layout.status()));
    return kExitFailed;
  }
  PrintText(LibvirtText(topology, devices, *layout));
  return kExitDone;
}

void Print(Output output, const Picture& picture, const Topology& topology) {
  switch (output) {
    case Output::kSvg:
      std::cout << TopologySvg(topology, picture.facts);
      return;
    case Output::kDot:
      std::cout << TopologyDot(topology, picture.facts);
      return;
    case Output::kJson:
    case Output::kYaml:
      PrintDocument(TopologyToJson(topology), output);
      return;
    case Output::kTable:
    case Output::kWide:
      PrintText(TopologyText(topology, output == Output::kWide ? 0 : TableWidth()));
  }
}

}  // namespace

int TopologyCommand(Session& session) {
  const Invocation& invocation = session.invocation();
  if (invocation.guest && invocation.output != Output::kTable) {
    PrintError("--guest prints what libvirt or KubeVirt reads; it goes with no -o");
    return kExitUsage;
  }
  const std::unique_ptr<Picture> picture = TakeOrPrint(session);
  if (picture == nullptr) return kExitFailed;
  const absl::StatusOr<Topology> topology =
      MakeTopology(*picture, ReadNumaNodes(session.tree()), invocation.arguments);
  if (!topology.ok()) {
    PrintError(Message(topology.status()));
    return kExitUsage;
  }
  if (invocation.guest) return PrintGuest(invocation, *picture, *topology);
  Print(invocation.output, *picture, *topology);
  return kExitDone;
}

}  // namespace vfio_agent
