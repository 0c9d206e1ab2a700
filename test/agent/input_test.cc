// Bad input: each gives one clear line and leaves everything else as it was.
#include <fstream>
#include <map>

#include "test/agent/node.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

// A tree of plain files with one good GPU in group 5, to which a test adds what is odd.
class PlainTree {
 public:
  PlainTree() {
    Device("0000:01:00.0");
    fs::create_directories(root() + "/sys/bus/pci/drivers/vfio-pci");
    fs::create_directories(root() + "/sys/class/iommu/dmar0");
  }
  const std::string& root() const { return dir_.path(); }
  std::string DirOf(const std::string& address) const {
    return root() + "/sys/devices/pci0000:00/" + address;
  }
  void Attribute(const std::string& address, const std::string& name, const std::string& text) {
    std::ofstream(DirOf(address) + "/" + name) << text;
  }
  void Device(const std::string& address) {
    const std::string dir = DirOf(address);
    fs::create_directories(dir);
    fs::create_directories(root() + "/sys/bus/pci/devices");
    fs::create_directories(root() + "/sys/kernel/iommu_groups/5/devices");
    fs::create_symlink("../../../devices/pci0000:00/" + address,
                       root() + "/sys/bus/pci/devices/" + address);
    fs::create_symlink("../../../kernel/iommu_groups/5", dir + "/iommu_group");
    for (const auto& [name, text] :
         std::map<std::string, std::string>{{"vendor", "0x10de\n"},
                                            {"device", "0x2330\n"},
                                            {"class", "0x030200\n"},
                                            {"numa_node", "-1\n"},
                                            {"driver_override", "(null)\n"}}) {
      Attribute(address, name, text);
    }
    Attribute(address, "config", std::string("\xde\x10\x30\x23", 4) + std::string(60, '\0'));
  }
  ProgramResult Plan() const { return RunAgent({"plan", "--root", root(), "-o", "json"}); }

 private:
  ScratchDir dir_;
};

TEST_CASE("a plain copied tree can be planned for", "[node]") {
  const PlainTree tree;
  const ProgramResult result = tree.Plan();
  INFO(result.err);
  CHECK(nlohmann::json::parse(result.out).at("groups").at(0).at("verdict") == "bind");
}

TEST_CASE("an odd device spoils none of the others", "[node]") {
  struct Row {
    const char* name;
    const char* text;
  };
  const Row row = GENERATE(
      Row{"vendor", "0x"}, Row{"vendor", "banana\n"}, Row{"device", "0x23300000\n"},
      Row{"class", ""}, Row{"numa_node", "north\n"}, Row{"config", "x"}, Row{"config", ""},
      Row{"resource", "not numbers\n"}, Row{"modalias", "\xff\xfe"}, Row{"boot_vga", "?\n"});
  CAPTURE(row.name, row.text);
  PlainTree tree;
  tree.Device("0000:02:00.0");
  tree.Attribute("0000:02:00.0", row.name, row.text);
  const ProgramResult result = tree.Plan();
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto plan = nlohmann::json::parse(result.out);
  CHECK(plan.at("groups").at(0).at("members").at(0).at("address") == "0000:01:00.0");
  CHECK(plan.at("groups").at(0).at("members").at(0).at("role") == "primary");
}

TEST_CASE("a link loop, a directory for a file and a dangling link are told, not followed",
          "[node]") {
  PlainTree tree;
  tree.Device("0000:02:00.0");
  const std::string dir = tree.DirOf("0000:02:00.0");
  fs::remove(dir + "/iommu_group");
  fs::create_symlink("iommu_group", dir + "/iommu_group");
  fs::remove(dir + "/numa_node");
  fs::create_directory(dir + "/numa_node");
  fs::create_symlink("loop", tree.root() + "/sys/bus/pci/devices/0000:03:00.0");
  const ProgramResult result = tree.Plan();
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, Catch::Contains("0000:01:00.0"));
}

TEST_CASE("a member that the group lists and that cannot be read keeps the group unbound",
          "[node]") {
  PlainTree tree;
  tree.Device("0000:02:00.0");
  for (const char* address : {"0000:01:00.0", "0000:02:00.0"}) {
    fs::create_symlink("../../../../devices/pci0000:00/" + std::string(address),
                       tree.root() + "/sys/kernel/iommu_groups/5/devices/" + address);
  }
  REQUIRE_THAT(tree.Plan().out, Catch::Contains("\"verdict\": \"bind\""));
  fs::remove(tree.DirOf("0000:02:00.0") + "/iommu_group");
  fs::create_symlink("../../../kernel/iommu_groups/junk",
                     tree.DirOf("0000:02:00.0") + "/iommu_group");
  const auto plan = nlohmann::json::parse(tree.Plan().out);
  CHECK(plan.at("groups").at(0).at("verdict") == "refused");
  CHECK(plan.at("refusals").at(0).at("code") == "foreign-member");
  CHECK(plan.at("refusals").at(0).at("address") == "0000:02:00.0");
}

TEST_CASE("no link leads out of the root", "[node]") {
  const ScratchDir outside;
  outside.Write("secret", "0x1234\n");
  PlainTree tree;
  tree.Device("0000:02:00.0");
  const std::string dir = tree.DirOf("0000:02:00.0");
  fs::remove(dir + "/vendor");
  fs::create_symlink(outside.path() + "/secret", dir + "/vendor");
  fs::create_symlink(outside.path(), tree.root() + "/sys/bus/pci/devices/0000:04:00.0");
  const ProgramResult result = RunAgent({"list", "--all", "--root", tree.root(), "-o", "json"});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, !Catch::Contains("1234"));
}

TEST_CASE("ADDR-02: a junk entry is skipped with a note, five digits of domain are read",
          "[node]") {
  const Node node("cases/ADDR-02");
  const ProgramResult result = node.Run({"list", "--all"});
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.err, Catch::Contains("foo"));
  CHECK_THAT(result.out, Catch::Contains("10001:8a:00.0"));
}

TEST_CASE("a tree without PCI devices is an error in one line", "[node]") {
  const ScratchDir dir;
  const ProgramResult result = RunAgent({"plan", "--root", dir.path()});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err, Catch::Contains("no PCI devices to read below"));
}

TEST_CASE("every recorded machine can be planned, listed and explained", "[node]") {
  std::vector<std::string> machines;
  for (const char* folder : {"", "/cases"}) {
    for (const auto& entry : fs::directory_iterator(std::string(MACHINES) + folder)) {
      if (entry.path().extension() != ".yaml") continue;
      machines.push_back((*folder == '\0' ? "" : "cases/") + entry.path().stem().string());
    }
  }
  REQUIRE(machines.size() > 50);
  for (const std::string& machine : machines) {
    CAPTURE(machine);
    const Node node(machine);
    const nlohmann::json plan = node.RunJson({"plan", "--all"});
    CHECK(node.Run({"list", "--all", "-o", "wide"}).exit_code == 0);
    CHECK(node.Writes().empty());
    for (const auto& group : plan.at("groups")) {
      CHECK((group.at("verdict") == "refused") == !group.at("refusals").empty());
      if (group.at("group").is_null()) continue;
      const std::string name = "group:" + std::to_string(group.at("group").get<int>());
      if (group.at("verdict") != "unselected") CHECK(node.Run({"explain", name}).exit_code == 0);
    }
  }
}

}  // namespace
}  // namespace vfio_agent
