// In which order a picture looks at what changes while it is taken.
#include "agent/session.h"

#include "sysfs/clock.h"
#include "test/agent/boards.h"

namespace vfio_agent {
namespace {

std::unique_ptr<Session> OpenSession(const Node& node) {
  auto session = Session::Open({.root = node.root(),
                                .config_file = node.dir().Write("config.yaml", ""),
                                .flags = {{"state-dir", node.state_dir()},
                                          {"device-plugin-dir", node.kubelet_dir()},
                                          {"kubelet-root-dir", node.kubelet_root()}}});
  INFO(session.status());
  REQUIRE(session.ok());
  return *std::move(session);
}

TEST_CASE("R33: a group that a pod opens while a picture is taken is known to be the pod's",
          "[node][grpc]") {
  const Node node{Node::MachineText{kBoards}};
  const auto kubelet = node.StartKubelet();
  const std::unique_ptr<Session> session = OpenSession(node);
  node.Control("hold 34 4242 qemu-kvm");
  const auto given = [&node] {
    node.Control("free 34");  // a look from now on would not see it open
    const Grant grant{
        .resource = kH100, .unit = kLone, .group = 34, .turn = 1, .at = MonotonicNow()};
    return Given{.grants = {grant}};
  };
  std::vector<std::string> notes;
  const auto picture = session->Take(notes, {.given = given});
  REQUIRE(picture.ok());
  CHECK(picture->custody.tenancy->open.contains(34));
  CHECK(picture->settled.empty());
  REQUIRE(picture->plan.resources.size() == 1);
  const Unit& unit = picture->plan.resources.front().units.back();
  REQUIRE(unit.id == kLone);
  CHECK(unit.state == UnitState::kHeld);
}

}  // namespace
}  // namespace vfio_agent
