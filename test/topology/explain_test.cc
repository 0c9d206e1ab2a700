// What `explain` answers, beyond what test/agent asks of every command.
#include <filesystem>
#include <set>

#include "test/agent/node.h"

namespace vfio_agent {
namespace {

using nlohmann::json;

json Group(const Node& node, const std::string& selector) {
  const json document = node.RunJson({"explain", selector});
  CHECK(document.at("schema") == "vfio-agent/explain/v1");
  REQUIRE(document.at("groups").size() == 1);
  return document.at("groups").at(0);
}

// A GPU and the host's disk below one root port without ACS; a free port that isolates.
constexpr char kSharedPort[] = R"(
name: shared-port
host: {iommu_active: true, iommu: intel}
devices:
- {address: "0000:00:01.0", vendor: "8086", device: "0c01", class: "0x060400", driver: pcieport, iommu_group: 1}
- {address: "0000:01:00.0", vendor: "8086", device: "e5c0", class: "0x060400", driver: pcieport, iommu_group: 1, parent: "0000:00:01.0"}
- {address: "0000:02:00.0", vendor: "8086", device: "e5c1", class: "0x060400", driver: pcieport, iommu_group: 1, parent: "0000:01:00.0", acs: {cap: "0x5f", ctl: "0x1d"}}
- {address: "0000:02:01.0", vendor: "8086", device: "e5c1", class: "0x060400", driver: pcieport, iommu_group: 1, parent: "0000:01:00.0", acs: {cap: "0x5f", ctl: "0x1d"}}
- {address: "0000:03:00.0", vendor: "10de", device: "2331", class: "0x030200", driver: nvidia, iommu_group: 1, parent: "0000:02:00.0"}
- {address: "0000:04:00.0", vendor: "144d", device: "a808", class: "0x010802", driver: nvme, iommu_group: 1, parent: "0000:02:01.0", attributes: {"nvme/nvme0/state": "live\n", "nvme/nvme0/nvme0n1/dev": "259:0\n", "nvme/nvme0/nvme0n1/size": "1953525168\n"}}
- {address: "0000:00:02.0", vendor: "8086", device: "352a", class: "0x060400", driver: pcieport, iommu_group: 2, acs: {cap: "0x5f", ctl: "0x1d"}}
files:
  proc/1/mountinfo: |
    24 1 259:0 / / rw,relatime shared:1 - ext4 /dev/nvme0n1 rw
links:
  sys/block/nvme0n1: "../devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:04:00.0/nvme/nvme0/nvme0n1"
  sys/class/block/nvme0n1: "../../devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:04:00.0/nvme/nvme0/nvme0n1"
)";

TEST_CASE(
    "explain: which port merges, who blocks, what holds it, and where the card would be alone",
    "[node]") {
  const Node node(Node::MachineText{kSharedPort});
  const ProgramResult result = node.Run({"explain", "03:00.0"});
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out,
             Catch::Contains("0000:00:01.0  8086:0c01  root port: no ACS capability: SrcValid "
                             "ReqRedir CmpltRedir UpstreamFwd missing  <- merges"));
  CHECK_THAT(result.out, Catch::Contains("ACSCtl: SrcValid+ ReqRedir+ CmpltRedir+ UpstreamFwd+"));
  CHECK_THAT(result.out, Catch::Contains("0000:04:00.0  foreign    driver nvme") &&
                             Catch::Contains("<- blocks"));
  CHECK_THAT(result.out, Catch::Contains("it carries nvme0n1, mounted on /"));
  CHECK_THAT(result.out, Catch::Contains("it would be alone below 0000:00:02.0 (free)"));
  CHECK_THAT(result.out, Catch::Contains("lspci -vvs 0000:00:01.0 | grep ACS"));
}

TEST_CASE("explain: the document says what the text says", "[node]") {
  const Node node(Node::MachineText{kSharedPort});
  const json group = Group(node, "03:00.0");
  CHECK(group.at("verdict") == "refused");
  const json& disk = group.at("members").at(5);
  CHECK(disk.at("address") == "0000:04:00.0");
  CHECK(disk.at("blocks") == true);
  REQUIRE(disk.at("uses").size() == 1);
  CHECK_THAT(disk.at("uses").at(0).get<std::string>(), Catch::Contains("nvme0n1"));
  CHECK(group.at("merges").size() >= 2);
  const json& path = group.at("paths").at("0000:03:00.0");
  REQUIRE(path.size() == 4);
  CHECK(path.at(0).at("merges") == true);
  CHECK(path.at(0).at("isolates") == false);
  CHECK(path.at(2).at("type") == "switch downstream port");
  CHECK(path.at(2).at("control") == "SrcValid+ ReqRedir+ CmpltRedir+ UpstreamFwd+");
  const json& slots = group.at("other_slots");
  CHECK(slots.at("fixed").is_null());
  CHECK(slots.at("ports").at(0).at("port") == "0000:00:02.0");
  CHECK(slots.at("ports").at(0).at("outcome") == "alone");
}

TEST_CASE("explain: a group that nobody selected says what would be if it were", "[node]") {
  const Node node("hgx-8gpu");
  // An NVSwitch that nothing uses, and the drive with the node's root file system.
  const json idle = Group(node, "0000:05:00.0");
  CHECK(idle.at("verdict") == "unselected");
  CHECK(idle.at("if_selected").at("address") == "0000:05:00.0");
  CHECK(idle.at("if_selected").at("verdict") == "bind");
  CHECK_THAT(node.Run({"explain", "05:00.0"}).out,
             Catch::Contains("if it were selected (resources: [{select: [{address: "
                             "\"0000:05:00.0\"}]}])\n    it could be given away"));
  const Node shared(Node::MachineText{kSharedPort});
  const std::string config = shared.dir().Write("none.yaml", "mode: container\n");
  const json busy = shared.RunJson({"explain", "04:00.0", "--config", config}).at("groups").at(0);
  CHECK(busy.at("if_selected").at("verdict") == "refused");
  bool named = false;
  for (const json& refusal : busy.at("if_selected").at("refusals")) {
    named |= refusal.at("code") == "in-use-storage";
  }
  CHECK(named);
}

TEST_CASE("explain: a card that the parents of mdev take is told by that entry", "[node]") {
  const Node node("mixed-8gpu");
  const std::string config =
      node.dir().Write("config.yaml",
                       "resources: [{select: [{address: \"0000:42:00.0\"}]}]\n"
                       "mdev: [{parent: [{vendor: \"10de\"}], types: {GRID T4-1Q: 2}}]\n");
  CHECK(node.RunJson({"plan", "--config", config}).at("refusals").size() == 8);
  const ProgramResult told = node.Run({"explain", "42:00.0", "--config", config});
  CHECK_THAT(told.out, Catch::Contains("mdev[0].parent selects 0000:42:00.0") &&
                           !Catch::Contains("could be given away"));
  const ProgramResult refused = node.Run({"bind", "42:00.0", "--config", config});
  CHECK(refused.exit_code == 3);
  CHECK_THAT(refused.out, Catch::Contains("mdev[0].parent selects 0000:42:00.0") &&
                              !Catch::Contains("add it to resources[].select"));
}

TEST_CASE("explain: a bridge's group is told, and nobody is asked to select it", "[node]") {
  const Node node("hgx-8gpu");
  const ProgramResult result = node.Run({"explain", "17:02.0"});
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out,
             Catch::Contains("path of 0000:17:02.0") && !Catch::Contains("if it were selected"));
}

TEST_CASE("explain: without an IOMMU, the group that the device would have", "[node]") {
  const Node node("server-broadwell-2x-p100-acs-bits-iommu-off");
  // Selected, and a device that nobody selected.
  const json gpu = Group(node, "04:00.0");
  CHECK(gpu.at("verdict") == "refused");
  CHECK(gpu.at("expected_members") == json::array({"0000:04:00.0"}));
  const ProgramResult drive = node.Run({"explain", "81:00.0"});
  CHECK(drive.exit_code == 0);
  CHECK_THAT(drive.out,
             Catch::Contains("no group: not selected by the configuration") &&
                 Catch::Contains("with the IOMMU on\n    it would be alone in its group"));
  CHECK_THAT(drive.out, Catch::Contains("cat /proc/cmdline"));
}

TEST_CASE("explain: a device without a group where the IOMMU is on has its answer too", "[node]") {
  const Node node("cases/IOMMU-02");
  const ProgramResult result = node.Run({"explain", "03:00.0"});
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, Catch::StartsWith("no group") && Catch::Contains("no-iommu-group"));
}

TEST_CASE("explain: a resource is told by its units, then group by group", "[node]") {
  const Node node("hgx-8gpu");
  const ProgramResult result = node.Run({"explain", kH100});
  CHECK_THAT(result.out, Catch::StartsWith("resource nvidia.com/GH100_H100_SXM5_80GB: 8 units\n") &&
                             Catch::Contains("  0000:1b:00.0  to-bind") &&
                             Catch::Contains("group 67, "));
  const json document = node.RunJson({"explain", kH100});
  CHECK(document.at("groups").size() == 8);
  REQUIRE(document.at("resources").size() == 1);
  CHECK(document.at("resources").at(0).at("units").size() == 8);
  CHECK(node.Run({"explain", "nvidia.com/NONE"}).exit_code == 2);
}

TEST_CASE("explain: a module of a board cannot move, and is told so only where it has company",
          "[node]") {
  const Node node("hgx-8gpu");
  CHECK(Group(node, "1b:00.0").at("other_slots").is_null());
  std::string text = kSharedPort;
  text.replace(text.find("device: \"2331\""), 14, "device: \"2330\"");
  const Node board(Node::MachineText{text});
  CHECK_THAT(Group(board, "03:00.0").at("other_slots").at("fixed").get<std::string>(),
             Catch::Contains("NVLink board"));
}

std::set<std::string> AddressesIn(const json& groups) {
  std::set<std::string> addresses;
  for (const json& group : groups) {
    for (const json& member : group.at("members")) addresses.insert(member.at("address"));
  }
  return addresses;
}

TEST_CASE("explain: every function of every recorded machine has an answer", "[node]") {
  size_t machines = 0;
  for (const auto& entry : std::filesystem::directory_iterator(MACHINES)) {
    if (entry.path().extension() != ".yaml") continue;
    ++machines;
    CAPTURE(entry.path().string());
    const Node node(entry.path().stem().string());
    std::set<std::string> asked;
    const json devices = node.RunJson({"list", "--all"}).at("devices");
    for (const json& device : devices) asked.insert(device.at("address"));
    REQUIRE_FALSE(asked.empty());
    std::vector<std::string> words = {"explain"};
    words.insert(words.end(), asked.begin(), asked.end());
    std::set<std::string> missing = asked;
    for (const std::string& address : AddressesIn(node.RunJson(words).at("groups"))) {
      missing.erase(address);
    }
    CHECK(missing == std::set<std::string>{});
    CHECK(node.Writes().empty());
  }
  CHECK(machines >= 25);
}

TEST_CASE("explain: of a copy without registers it says so, and asks nobody to be root there",
          "[node]") {
  std::string yaml = kSharedPort;
  for (size_t at = 0; (at = yaml.find("- {address", at)) != std::string::npos; at += 3) {
    yaml.insert(at + 3, "config: short, ");
  }
  const Node node(Node::MachineText{yaml});
  const ProgramResult result = node.Run({"explain", "03:00.0"});
  CHECK_THAT(result.out, Catch::Contains("not readable (not in this copy)"));
  CHECK_THAT(result.out, !Catch::Contains("CAP_SYS_ADMIN") && !Catch::Contains("sudo vfio-agent"));
}

TEST_CASE("explain: a device and a resource that claims ask for say so, others do not", "[node]") {
  const Node node("gb200-4gpu-egm");
  const auto explain = [&node](const std::string& selector, const std::string& serve) {
    const std::string file = node.dir().Write(
        "config.yaml",
        "resources: [{preset: nvidia, name: nvidia.com/gb200, serve: " + serve + "}]\n");
    const ProgramResult result = node.Run({"explain", selector, "--config", file});
    CHECK(result.exit_code == 0);
    const json groups = node.RunJson({"explain", selector, "--config", file}).at("groups");
    for (const json& group : groups) CHECK(group.contains("serve") == (serve == "dra"));
    return result.out;
  };
  constexpr char kLine[] = "  served by claims (serve: dra)\n";
  CHECK_THAT(explain("0008:01:00.0", "dra"),
             Catch::Contains(kLine) &&
                 Catch::Contains("goes to nobody: resource claims get no such node"));
  CHECK_THAT(explain("nvidia.com/gb200", "dra"),
             Catch::StartsWith(std::string("resource nvidia.com/gb200: 4 units\n") + kLine));
  for (const char* selector : {"0008:01:00.0", "nvidia.com/gb200"}) {
    CHECK_THAT(explain(selector, "device-plugin"), !Catch::Contains("by claims"));
  }
}

TEST_CASE("explain: of a single function nothing tells why it is together", "[node]") {
  const Node node(Node::MachineText{kSharedPort});
  CHECK_THAT(node.Run({"explain", "00:02.0"}).out, !Catch::Contains("why together"));
  CHECK_THAT(node.Run({"explain", "03:00.0"}).out, Catch::Contains("  why together\n"));
}

}  // namespace
}  // namespace vfio_agent
