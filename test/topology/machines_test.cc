// Distances on recorded machines. The grades were worked out by hand from the bridges that each
// file lists, by the legend of `nvidia-smi topo -m`.
#include "test/agent/node.h"
#include "test/agent/vgpu_machines.h"

namespace vfio_agent {
namespace {

struct Row {
  const char* machine;
  const char* a;
  const char* b;
  const char* grade;
};

// A file without NUMA nodes is simulated as a machine with one, so other host bridges are NODE.
const std::vector<Row> kRows = {
    // GPU and NIC at ports 2 and 0 of one switch; the NVSwitches at a switch of the chipset's bus.
    {"hgx-8gpu", "0000:1b:00.0", "0000:18:00.0", "PIX"},
    {"hgx-8gpu", "0000:05:00.0", "0000:08:00.0", "PIX"},
    {"hgx-8gpu", "0000:0b:00.0", "0000:0b:00.1", "PIX"},
    {"hgx-8gpu", "0000:05:00.0", "0000:02:00.0", "PHB"},
    {"hgx-8gpu", "0000:1b:00.0", "0000:43:00.0", "NODE"},
    {"hgx-8gpu", "0000:1b:00.0", "0000:05:00.0", "NODE"},
    {"hgx-8gpu", "0000:1b:00.0", "0000:9d:00.0", "SYS"},
    // The GPU is below a second switch at port 2 of the NIC's.
    {"hgx-b200-8gpu-cx7-switch-chains", "0000:1b:00.0", "0000:18:00.0", "PXB"},
    {"hgx-b200-8gpu-cx7-switch-chains", "0000:05:00.0", "0000:05:00.3", "PIX"},
    {"hgx-b200-8gpu-cx7-switch-chains", "0000:1b:00.0", "0000:43:00.0", "NODE"},
    // Two levels of PLX switches; the NVSwitches below the same first level as four GPUs.
    {"dgx2-16x-v100-plx-nvswitch", "0000:34:00.0", "0000:36:00.0", "PIX"},
    {"dgx2-16x-v100-plx-nvswitch", "0000:34:00.0", "0000:39:00.0", "PXB"},
    {"dgx2-16x-v100-plx-nvswitch", "0000:57:00.0", "0000:61:00.0", "PXB"},
    {"dgx2-16x-v100-plx-nvswitch", "0000:34:00.0", "0000:57:00.0", "NODE"},
    {"dgx2-16x-v100-plx-nvswitch", "0000:34:00.0", "0000:b7:00.0", "SYS"},
    {"mi300x-8gpu-cx7-switches", "0000:0c:00.0", "0000:07:00.0", "PIX"},
    {"mi300x-8gpu-cx7-switches", "0000:0c:00.0", "0000:15:00.0", "NODE"},
    {"mi300x-8gpu-cx7-switches", "0000:0c:00.0", "0000:9f:00.0", "SYS"},
    // Guests whose provider tells of the switches below made-up bridges, all on one made-up root
    // bus, of both nodes.
    {"aws-p4d-a100-vm", "0000:10:1c.0", "0000:10:1d.0", "PIX"},
    {"aws-p4d-a100-vm", "0000:10:1c.0", "0000:10:1b.0", "PIX"},
    {"aws-p4d-a100-vm", "0000:10:1c.0", "0000:20:1c.0", "PHB"},
    {"aws-p4d-a100-vm", "0000:10:1c.0", "0000:90:1c.0", "SYS"},
    {"azure-ndv4-a100-vm", "0001:00:00.0", "0002:00:00.0", "PIX"},
    {"azure-ndv4-a100-vm", "0001:00:00.0", "0003:00:00.0", "SYS"},
    {"mixed-8gpu", "0000:01:00.0", "0000:02:00.0", "PHB"},
    {"mixed-8gpu", "0000:01:00.0", "0000:41:00.0", "SYS"},
    // Drives in a carrier of two levels of switches.
    {"server-esc8000a-4x-rtx6000ada", "0000:65:00.0", "0000:66:00.0", "PIX"},
    {"server-esc8000a-4x-rtx6000ada", "0000:65:00.0", "0000:6b:00.0", "PXB"},
    {"server-esc8000a-4x-rtx6000ada", "0000:01:00.0", "0000:21:00.0", "NODE"},
    {"server-esc8000a-4x-rtx6000ada", "0000:01:00.0", "0000:c1:00.0", "SYS"},
    // The file tells no node of the drives, and the machine has two.
    {"server-esc8000a-4x-rtx6000ada", "0000:01:00.0", "0000:65:00.0", "unknown"},
    {"epyc-h100nvl-vfio-bound", "0000:c1:00.0", "0000:c2:00.0", "PHB"},
    {"epyc-h100nvl-vfio-bound", "0000:01:00.0", "0000:01:00.1", "PIX"},
};

TEST_CASE("recorded machines have the distances that nvidia-smi would show", "[node]") {
  std::string machine;
  for (const Row& row : kRows) {
    if (machine == row.machine) continue;
    machine = row.machine;
    const Node node(machine);
    const nlohmann::json topology = node.RunJson({"topology"});
    CHECK(topology.at("schema") == "vfio-agent/topology/v1");
    for (const Row& same : kRows) {
      if (machine != same.machine) continue;
      CAPTURE(machine, same.a, same.b);
      const auto& distances = topology.at("distances");
      REQUIRE(distances.contains(same.a));
      REQUIRE(distances.at(same.a).contains(same.b));
      CHECK(distances.at(same.a).at(same.b) == same.grade);
      CHECK(distances.at(same.b).at(same.a) == same.grade);
    }
  }
}

struct Count {
  const char* machine;
  int gpus, nvswitches, nics, nvmes;
  size_t pairs;  // GPU and NIC below one switch
  size_t boards;
};

TEST_CASE("GPUs, NVSwitches, adapters, drives, rails and boards of recorded machines", "[node]") {
  const auto row = GENERATE(Count{"hgx-8gpu", 8, 4, 10, 2, 8, 1},
                            Count{"hgx-b200-8gpu-cx7-switch-chains", 8, 0, 12, 0, 8, 1},
                            Count{"dgx2-16x-v100-plx-nvswitch", 16, 11, 0, 0, 0, 1},
                            Count{"mi300x-8gpu-cx7-switches", 8, 0, 8, 0, 8, 0},
                            Count{"mixed-8gpu", 8, 0, 0, 0, 0, 1},
                            Count{"server-esc8000a-4x-rtx6000ada", 4, 0, 6, 18, 0, 0},
                            Count{"supermicro-epyc-no-gpu", 0, 0, 4, 3, 0, 0});
  CAPTURE(row.machine);
  const Node node(row.machine);
  const nlohmann::json topology = node.RunJson({"topology"});
  std::map<std::string, int> kinds;
  for (const auto& device : topology.at("devices")) ++kinds[device.at("kind")];
  CHECK(kinds["gpu"] == row.gpus);
  CHECK(kinds["nvswitch"] == row.nvswitches);
  CHECK(kinds["nic"] == row.nics);
  CHECK(kinds["nvme"] == row.nvmes);
  CHECK(kinds["other"] == 0);
  CHECK(topology.at("pairs").size() == row.pairs);
  CHECK(topology.at("nvlink_boards").size() == row.boards);
}

TEST_CASE("the console's adapter is no GPU", "[node]") {
  const Node node("hgx-8gpu");
  CHECK_THAT(node.Run({"topology"}).out, !Catch::Contains("0000:0a:00.0"));
}

TEST_CASE("a selected device of any class is shown", "[node]") {
  const Node node("desktop-b550-second-gpu-in-chipset-group");
  const std::string config = node.dir().Write("config.yaml", R"(
resources:
  - name: site.example.com/usb
    select: [{address: "0000:02:00.0"}]
)");
  const nlohmann::json topology = node.RunJson({"topology", "--config", config});
  std::vector<std::string> others;
  for (const auto& device : topology.at("devices")) {
    if (device.at("kind") == "other") others.push_back(device.at("address"));
  }
  CHECK(others == std::vector<std::string>{"0000:02:00.0"});
}

TEST_CASE("a card whose mediated devices or virtual functions go to guests is the host's",
          "[node]") {
  const auto [machine, config] =
      GENERATE(std::pair(std::string(kT4Host) + kT4Devices,
                         "mdev: [{parent: [{vendor: \"10de\"}], types: {GRID T4-1Q: 2}}]\n"),
               std::pair(std::string(kL40sMachine),
                         "vgpu: [{parent: [{vendor: \"10de\"}], types: {NVIDIA L40S-1B: 2}}]\n"));
  const Node node(Node::MachineText{machine});
  const std::string file = node.dir().Write("config.yaml", config);
  const nlohmann::json device = node.RunJson({"topology", "--config", file}).at("devices").at(0);
  CHECK(device.at("host") == true);
  CHECK(device.at("resource").is_null());
  CHECK_THAT(node.Run({"topology", "--config", file}).out,
             Catch::Contains(" host ") && !Catch::Contains("unselected"));
  CHECK_THAT(node.Run({"topology", "-o", "dot", "--config", file}).out, Catch::Contains("host, "));
}

TEST_CASE("selectors choose what is compared", "[node]") {
  const Node node("hgx-8gpu");
  CHECK(node.RunJson({"topology", "1b:00.0", "18:00.0"}).at("devices").size() == 2);
  CHECK(node.RunJson({"topology", kH100}).at("devices").size() == 8);
  CHECK(node.RunJson({"topology", "10de:22a3"}).at("devices").size() == 4);
  CHECK(node.RunJson({"topology", "group:23"}).at("devices").size() == 1);
  // By its address even what is not shown otherwise.
  CHECK(node.RunJson({"topology", "0000:0a:00.0"}).at("devices").at(0).at("kind") == "other");
  CHECK(node.Run({"topology", "0000:17:00.0"}).exit_code == 2);  // a bridge
  CHECK(node.Run({"topology", "nvidia.com/NONE"}).exit_code == 2);
  CHECK(node.Run({"topology", "spoon"}).exit_code == 2);
}

TEST_CASE("every line of the narrow topology fits 100 columns, and it names what it shows",
          "[node]") {
  const Node node("hgx-8gpu");
  const std::string out = node.Run({"topology"}).out;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line) && !line.starts_with("NVLink");) {
    CAPTURE(line);
    CHECK(line.size() <= 100);
  }
  CHECK_THAT(out, Catch::Contains("GPU0 0000:1b:00.0  NIC2 0000:18:00.0  PIX    0000:16:00.0"));
  CHECK_THAT(out, Catch::Contains("8 GPUs, 4 NVSwitches on PCI"));
}

TEST_CASE("pictures and guests are for topology, and a guest goes with no -o", "[node]") {
  const Node node("mixed-8gpu");
  CHECK(node.Run({"plan", "-o", "svg"}).exit_code == 2);
  CHECK(node.Run({"topology", "--guest", "xen"}).exit_code == 2);
  CHECK(node.Run({"topology", "--guest", "libvirt", "-o", "json"}).exit_code == 2);
  CHECK_THAT(node.Run({"topology", "-o", "svg"}).out, Catch::StartsWith("<svg") &&
                                                          Catch::Contains("NUMA node 1") &&
                                                          Catch::EndsWith("</svg>\n"));
  CHECK_THAT(node.Run({"topology", "-o", "dot"}).out, Catch::StartsWith("digraph"));
  CHECK_THAT(node.Run({"topology", "-o", "yaml"}).out, Catch::StartsWith("schema:"));
}

TEST_CASE("a snapshot has the distances, the nodes and the guest of its machine", "[node]") {
  const Node node("mixed-8gpu");
  const std::string file = node.dir().path() + "/node.tar.gz";
  REQUIRE(node.Run({"snapshot", file}).exit_code == 0);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"topology", "-o", "json"}, {"topology", "--guest", "libvirt"}}) {
    std::vector<std::string> replay = words;
    replay.insert(replay.end(), {"--root", file});
    CHECK(RunAgent(replay).out == node.Run(words).out);
  }
}

TEST_CASE("topology writes nothing, on every recorded machine", "[node]") {
  for (const auto& entry : std::filesystem::directory_iterator(MACHINES)) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string machine = entry.path().stem().string();
    CAPTURE(machine);
    const Node node(machine);
    CHECK(node.Run({"topology"}).exit_code == 0);
    CHECK(node.Writes().empty());
  }
}

}  // namespace
}  // namespace vfio_agent
