// Labels of the Node, and whose pod something is about.
#include <sys/utsname.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "agent/cluster/checkpoint_pods.h"
#include "agent/cluster/node_labels.h"
#include "agent/cluster/waiting_pods.h"
#include "agent/daemon/cluster_teller.h"

namespace vfio_agent {
namespace {

constexpr char kT4[] = "nvidia.com/TESLA_T4";
constexpr char kUnit[] = "0000:11:00.0";
const absl::Time kNow = absl::FromUnixSeconds(100);

TEST_CASE("the Node's labels are those of the file for NFD; a value that is none is left out",
          "[cluster-values]") {
  CHECK(NodeLabelsOf("vfio-agent/iommu=intel\nvfio-agent/T4.units=8\n") ==
        NodeLabels{{"vfio-agent/iommu", "intel"}, {"vfio-agent/T4.units", "8"}});
  CHECK(NodeLabelsOf("vfio-agent/a=-x\nvfio-agent/b=x y\nvfio-agent/c=" + std::string(64, 'x') +
                     "\nno line\nvfio-agent/d=\n") == NodeLabels{{"vfio-agent/d", ""}});
}

TEST_CASE("this node's name is the setting, else NODE_NAME, else the host's", "[cluster-values]") {
  ::setenv("NODE_NAME", "from-env", 1);  // NOLINT(concurrency-mt-unsafe)
  CHECK(*NodeNameOf({.api_node_name = "gpu-7"}) == "gpu-7");
  CHECK(*NodeNameOf({}) == "from-env");
  ::setenv("NODE_NAME", "../x", 1);  // NOLINT(concurrency-mt-unsafe)
  CHECK(absl::IsNotFound(NodeNameOf({}).status()));
  ::unsetenv("NODE_NAME");  // NOLINT(concurrency-mt-unsafe)
  struct utsname host = {};
  REQUIRE(::uname(&host) == 0);
  const std::string name = absl::AsciiStrToLower(host.nodename);
  CHECK((NodeNameOf({}).ok() ? *NodeNameOf({}) == name : !IsNodeName(name)));
}

std::string Entry(const char* pod, const char* ids, const char* resource = kT4) {
  return absl::StrFormat(
      R"({"PodUID":"%s","ContainerName":"compute","ResourceName":"%s","DeviceIDs":%s})", pod,
      resource, ids);
}
std::string Checkpoint(const std::string& entries) {
  return R"({"Data":{"PodDeviceEntries":[)" + entries + R"(]},"Checksum":1})";
}
std::string UidIn(const std::string& text) { return PodUidOf(text, "compute", kT4, kUnit); }

TEST_CASE("the kubelet's checkpoint has the pod's uid, in its form of today and of before 1.20",
          "[cluster-values]") {
  const std::string today = Entry("u-1", R"({"-1":["0000:12:00.0","0000:11:00.0"]})");
  CHECK(UidIn(Checkpoint(today)) == "u-1");
  CHECK(UidIn(Checkpoint(Entry("u-2", R"(["0000:11:00.0"])"))) == "u-2");
  CHECK(UidIn(Checkpoint(Entry("u-3", R"({"0":["0000:12:00.0"]})"))).empty());
  CHECK(UidIn(Checkpoint(Entry("u-3", R"({"0":["0000:11:00.0"]})", "other.com/x"))).empty());
  CHECK(PodUidOf(Checkpoint(today), "other", kT4, kUnit).empty());
}

TEST_CASE("two pods in the checkpoint are none: one has ended, and nobody says which",
          "[cluster-values]") {
  const std::string ids = R"({"0":["0000:11:00.0"]})";
  CHECK(UidIn(Checkpoint(Entry("u-1", ids.c_str()) + "," + Entry("u-2", ids.c_str()))).empty());
  CHECK(UidIn(Checkpoint(Entry("u-1", ids.c_str()) + "," + Entry("u-1", ids.c_str()))) == "u-1");
}

TEST_CASE("all that the kubelet's checkpoint has containers down for", "[cluster-values]") {
  const auto claims = CheckpointClaims(
      Checkpoint(Entry("u-2", R"({"-1":["0000:12:00.0"],"0":["not-ours","0000:AF:00.0"]})") + "," +
                 Entry("u-1", R"(["0000:11:00.0"])")));
  REQUIRE(claims);
  CHECK(*claims == std::vector<PodClaim>{{"", "u-1", "compute", kT4, "0000:11:00.0"},
                                         {"", "u-2", "compute", kT4, "0000:12:00.0"},
                                         {"", "u-2", "compute", kT4, "0000:af:00.0"}});
  CHECK(CheckpointClaims(R"({"Data":{"PodDeviceEntries":null}})")->empty());
  CHECK_FALSE(CheckpointClaims("{"));
  CHECK_FALSE(CheckpointClaims("[]"));
}

TEST_CASE("a checkpoint of any other form names nobody", "[cluster-values]") {
  std::string deep = Entry("u-1", (std::string(100'000, '[') + std::string(100'000, ']')).c_str());
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string(R"({"Data":7})"),
        std::string(R"({"Data":{"PodDeviceEntries":[7,null,{"DeviceIDs":"0000:11:00.0"}]}})"),
        Checkpoint(deep)}) {
    CHECK(UidIn(text).empty());
  }
}

NodeEvent Refused() {
  return {.reason = "NodeMissing", .action = "Start", .resource = kT4, .units = {kUnit}};
}
PodClaim Claim(const char* pod, const char* unit = kUnit, const char* resource = kT4) {
  return {"team", pod, "compute", resource, unit};
}
const WaitingPods::UidOf kUid = [](const PodClaim& claim) { return "uid of " + claim.pod; };

TEST_CASE("what was refused is told of the pod as soon as the kubelet lists it",
          "[cluster-values]") {
  WaitingPods waiting;
  waiting.Add(Refused(), kNow);
  CHECK(waiting.Match({}, kUid, kNow).empty());
  CHECK(waiting
            .Match({.list = {Claim("b", kUnit, "other.com/x"), Claim("c", "0000:12:00.0")}}, kUid,
                   kNow)
            .empty());
  CHECK_FALSE(waiting.empty());
  const auto told = waiting.Match({.list = {Claim("vm")}}, kUid, kNow + absl::Seconds(2));
  REQUIRE(told.size() == 1);
  CHECK(told[0].first == Refused());
  CHECK(told[0].second == PodRef{"team", "vm", "uid of vm"});
  CHECK(waiting.empty());
}

TEST_CASE(
    "where two pods have some of what was asked for, or the kubelet is silent, nobody is "
    "blamed",
    "[cluster-values]") {
  WaitingPods waiting;
  NodeEvent event = Refused();
  event.units.push_back("0000:12:00.0");
  waiting.Add(event, kNow);
  CHECK(waiting.Match({.list = {Claim("a"), Claim("b", "0000:12:00.0")}}, kUid, kNow).empty());
  CHECK(waiting.Match({.known = false, .list = {Claim("a")}}, kUid, kNow).empty());
  CHECK(waiting.Match({.list = {Claim("a"), Claim("a", "0000:12:00.0")}}, kUid, kNow).size() == 1);
}

TEST_CASE("after fifteen seconds no pod is waited for, and never for more than 64",
          "[cluster-values]") {
  WaitingPods waiting;
  waiting.Add({.reason = "Bound"}, kNow);  // about no pod
  CHECK(waiting.empty());
  for (int i = 0; i < 100; ++i) waiting.Add(Refused(), kNow);
  waiting.Match({}, kUid, kNow + absl::Seconds(14));
  CHECK(waiting.Match({.list = {Claim("vm")}}, kUid, kNow + absl::Seconds(14)).size() == 64);
  waiting.Add(Refused(), kNow);
  waiting.Match({}, kUid, kNow + absl::Seconds(15));
  CHECK(waiting.empty());
}

}  // namespace
}  // namespace vfio_agent
