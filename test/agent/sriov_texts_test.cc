// What the commands say of physical functions and of virtual functions that are to be made.
#include "test/agent/config_mount.h"
#include "test/agent/node.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr char kPf[] = "0000:0b:00.0";
constexpr char kVf1[] = "0000:0b:00.1";
constexpr char kVf2[] = "0000:0b:00.2";
constexpr char kVfs[] = "nvidia.com/vf";

Node::MachineText Card(const std::string& more = "") {
  return {
      "name: sriov\nhost: {iommu_active: true, iommu: intel}\ndevices:\n"
      "- {address: \"0000:0b:00.0\", vendor: \"10de\", device: \"2bb5\", class: \"0x030200\", "
      "driver: nvidia, iommu_group: 1, sriov_totalvfs: 4, sriov_vf_driver: nvidia" +
      more + "}\n"};
}

std::string Entry(const std::string& more) {
  return "resources: [{name: nvidia.com/vf, select: [{vendor: \"10de\"}], " + more + "}]\n";
}

// The card under one configuration.
struct Configured {
  explicit Configured(const std::string& more, const std::string& device = "")
      : node(Card(device)), config(node.dir().Write("config.yaml", Entry(more))) {}
  ProgramResult Run(std::vector<std::string> words) const {
    words.insert(words.end(), {"--config", config});
    return node.Run(std::move(words));
  }
  Node node;
  std::string config;
};

TEST_CASE("virtual functions that are to be made are told by every list of what is served",
          "[node]") {
  const Configured card("sriov: {vfs: 4}");
  const std::string sentence =
      "4 virtual functions of 0000:0b:00.0 are to be made for nvidia.com/vf";
  CHECK_THAT(card.Run({"list", "resources"}).err, Catch::Contains(sentence));
  const ProgramResult kubevirt = card.Run({"kubevirt"});
  CHECK_THAT(kubevirt.out,
             Catch::Contains("# This node serves nothing of what was asked for yet.\n# " +
                             sentence + ": run this again when they are there"));
  CHECK_THAT(card.Run({"doctor"}).out, Catch::Contains(sentence));
  REQUIRE(card.Run({"bind"}).exit_code == 0);
  CHECK_THAT(card.Run({"list", "resources"}).err, !Catch::Contains("to be made"));
  CHECK_THAT(card.Run({"kubevirt"}).out, !Catch::Contains("to be made"));
}

TEST_CASE("bind of a physical function binds those of its virtual functions that are not",
          "[node]") {
  const Configured card("sriov: {vfs: 2}");
  REQUIRE(card.Run({"bind"}).exit_code == 0);
  REQUIRE(card.Run({"release", kVf1}).exit_code == 0);
  REQUIRE(card.node.DriverOf(kVf1).empty());
  const ProgramResult bind = card.Run({"bind", kPf});
  INFO(bind.out << bind.err);
  CHECK(bind.exit_code == 0);
  CHECK(card.node.DriverOf(kVf1) == "vfio-pci");
  CHECK_THAT(bind.out, Catch::Contains("has its virtual functions nvidia.com/vf: 0000:0b:00.0") &&
                           Catch::Contains("bound nvidia.com/vf: 0000:0b:00.1"));
}

TEST_CASE("bind of a physical function that is to have none made takes those that are there",
          "[node]") {
  SECTION("two that somebody else has made") {
    const Configured card("sriov: {}", ", sriov_numvfs: 2");
    CHECK(card.Run({"bind", kPf}).exit_code == 0);
    CHECK(card.node.DriverOf(kVf1) == "vfio-pci");
    CHECK(card.node.DriverOf(kVf2) == "vfio-pci");
    CHECK(card.node.DriverOf(kPf) == "nvidia");
  }
  SECTION("none") {
    const ProgramResult bind = Configured("sriov: {}").Run({"bind", kPf});
    CHECK(bind.exit_code == 3);
    CHECK_THAT(bind.out, Catch::Contains("it has no virtual functions, and the configuration makes "
                                         "none") &&
                             Catch::Contains("set resources[].sriov.vfs"));
  }
}

TEST_CASE("explain of a physical function whose virtual functions are served", "[node]") {
  const Configured card("sriov: {}", ", sriov_numvfs: 2");
  REQUIRE(card.Run({"bind"}).exit_code == 0);
  const ProgramResult explained = card.Run({"explain", kPf});
  CHECK_THAT(explained.out, Catch::Contains("virtual functions that it has go to guests") &&
                                !Catch::Contains("if it were selected") &&
                                !Catch::Contains("sriov_numvfs") && !Catch::Contains("fuser"));
  CHECK_THAT(card.Run({"explain", kVf1}).out, Catch::Contains("fuser -v /dev/vfio/"));
  const Configured counted("sriov: {vfs: 2}");
  REQUIRE(counted.Run({"bind"}).exit_code == 0);
  CHECK_THAT(counted.Run({"explain", kPf}).out, !Catch::Contains("fuser"));
}

TEST_CASE("explain of a virtual function that is left out, and of one that nobody selected",
          "[node]") {
  const Configured excluded("sriov: {}, exclude: [{address: \"0000:0b:00.1\"}]",
                            ", sriov_numvfs: 2");
  CHECK_THAT(excluded.Run({"explain", kVf1}).out,
             Catch::Contains("excluded 0000:0b:00.1") && !Catch::Contains("if it were selected"));
  const Configured other("sriov: {}, exclude: [{vendor: \"10de\"}]", ", sriov_numvfs: 2");
  const std::string config =
      other.node.dir().Write("none.yaml", "resources: [{select: [{address: \"0000:ff:00.0\"}]}]\n");
  const ProgramResult explained = other.node.Run({"explain", kVf1, "--config", config});
  CHECK_THAT(explained.out,
             Catch::Contains("if it were selected (resources: [{select: [{address: "
                             "\"0000:0b:00.0\"}], sriov: {}}])\n    it could be given away"));
}

TEST_CASE("another number of virtual functions: reload, plan and explain say the way, and it works",
          "[node][grpc]") {
  const Node node(Card());
  ConfigMount mount(node.dir().path() + "/etc", Entry("sriov: {vfs: 2}"));
  const auto kubelet = node.StartKubelet();
  const Daemon daemon(node.DaemonArguments({"--config", mount.file()}));
  REQUIRE(kubelet->WaitHealthy(kVfs, 2, kLong));
  mount.Put(Entry("sriov: {vfs: 4}"));
  const std::string line = daemon.WaitForLine({"event=config_plan", kPf}, kLong);
  INFO(daemon.Log());
  CHECK_THAT(line, Catch::Contains("change=\"virtual functions stay\"") &&
                       !Catch::Contains("no longer served"));
  const std::string plan = node.Run({"plan", "--config", mount.file()}).out;
  const std::string explained = node.Run({"explain", kPf, "--config", mount.file()}).out;
  CHECK_THAT(explained, Catch::Contains("keeps the virtual functions that it has"));
  for (const std::string& text : {line, plan, explained}) {
    CHECK_THAT(text, Catch::Contains("to have 4: ") && Catch::Contains("exclude") &&
                         Catch::Contains("`vfio-agent release 0000:0b:00.0`"));
  }
  CHECK(node.DriverOf(kVf1) == "vfio-pci");
  // As it says.
  mount.Put(Entry("sriov: {vfs: 4}, exclude: [{address: \"0000:0b:00.0\"}]"));
  REQUIRE(Eventually(
      [&] {
        return node.Run({"release", kPf, "--config", mount.file()}).exit_code == 0;
      },
      kLong));
  mount.Put(Entry("sriov: {vfs: 4}"));
  CHECK(kubelet->WaitHealthy(kVfs, 4, kLong));
}

}  // namespace
}  // namespace vfio_agent
