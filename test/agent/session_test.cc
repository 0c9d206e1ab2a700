// In which order a picture looks at what changes while it is taken.
#include "agent/session.h"

#include <utility>

#include "sysfs/clock.h"
#include "test/agent/boards.h"
#include "test/kubelet/fake_pods.h"

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

Grant GivenAt(absl::Time at) {
  return {.resource = kH100, .unit = kLone, .group = 34, .turn = 1, .at = at};
}

Picture Take(Session& session, Wish wish) {
  std::vector<std::string> notes;
  absl::StatusOr<Picture> picture = session.Take(notes, std::move(wish));
  INFO(picture.status());
  REQUIRE(picture.ok());
  return *std::move(picture);
}

UnitState StateOfLone(const Picture& picture) {
  REQUIRE(picture.plan.resources.size() == 1);
  const Unit& unit = picture.plan.resources.front().units.back();
  REQUIRE(unit.id == kLone);
  return unit.state;
}

TEST_CASE("R33: a group that a pod opens while a picture is taken is known to be the pod's",
          "[node][grpc]") {
  const Node node{Node::MachineText{kBoards}};
  const auto kubelet = node.StartKubelet();
  const std::unique_ptr<Session> session = OpenSession(node);
  node.Control("hold 34 4242 qemu-kvm");
  const Picture picture = Take(*session, {.given = [&node] {
    node.Control("free 34");  // a look from now on does not see it
    return Given{.grants = {GivenAt(MonotonicNow())}};
  }});
  CHECK(picture.custody.tenancy->open.contains(34));
  CHECK(picture.settled.empty());
  CHECK(StateOfLone(picture) == UnitState::kHeld);
}

TEST_CASE("R33: a group whose pod ends while a picture is taken is not taken for a stranger's",
          "[node][grpc]") {
  const Node node{Node::MachineText{kBoards}};
  FakePods kubelet(node.kubelet_root());
  REQUIRE(kubelet.Start().ok());
  bool asked = false;
  kubelet.TellAllocatable([&] {
    if (!std::exchange(asked, true)) node.Control("free 34");
    return FakePods::Allocatable();
  });
  const std::unique_ptr<Session> session = OpenSession(node);
  node.Control("hold 34 4242 qemu-kvm");
  const Picture picture = Take(*session, {});
  CHECK(asked);
  CHECK(StateOfLone(picture) == UnitState::kReady);
}

TEST_CASE("R33: what no listed pod has is free only by a look at the processes", "[node][grpc]") {
  const Node node{Node::MachineText{kBoards}};
  const auto kubelet = node.StartKubelet();
  const std::unique_ptr<Session> session = OpenSession(node);
  Wish wish{.given = [] { return Given{.grants = {GivenAt(MonotonicNow() - absl::Seconds(30))}}; },
            .tenants = Wish::Tenants::kPods};
  CHECK(Take(*session, wish).settled.empty());
  wish.tenants = Wish::Tenants::kAll;
  node.Control("hold 34 4242 init");
  CHECK(Take(*session, wish).settled.empty());
  node.Control("free 34");
  CHECK(Take(*session, wish).settled.size() == 1);
}

TEST_CASE("R33: where looking for processes does not end, what an ended pod had counts as open",
          "[node][grpc]") {
  const Node node{Node::MachineText{kBoards}};
  const auto kubelet = node.StartKubelet();
  const Tree tree = *Tree::Open(node.root());
  const std::unique_ptr<Session> session = OpenSession(node);
  const NodeFacts facts = Take(*session, {}).facts;
  Tenancy before;
  before.claims.list = {{.pod_namespace = "team",
                         .pod = "vm",
                         .container = "compute",
                         .resource = kH100,
                         .unit = kLone}};
  Inquirer inquirer;
  inquirer.set_patience({.uses = absl::ZeroDuration()});
  const Tenancy now =
      inquirer.LookAtTenants(tree, facts, {.processes = false}, before, session->settings());
  CHECK(now.claims.list.empty());
  CHECK(now.opened == before.opened);
  REQUIRE(now.open.size() == 1);
  CHECK(now.open.at(34).front().command == "a process perhaps: looking does not return");
}

}  // namespace
}  // namespace vfio_agent
