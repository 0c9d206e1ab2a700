// Parents of mediated devices without a group; and room that somebody else takes first.
#include <fcntl.h>
#include <unistd.h>

#include "iommu/mdev/mdev.h"
#include "sysfs/fd.h"
#include "test/agent/node.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr char kQ1[] = "nvidia.com/GRID_T4-1Q";
constexpr char kT4[] = "0000:3b:00.0";
constexpr char kForeign[] = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001";
constexpr char kDevices[] = R"(
devices:
- address: "0000:3b:00.0"
  vendor: "10de"
  device: "1eb8"
  class: "030200"
  driver: nvidia
  mdev_types:
    nvidia-222: {name: GRID T4-1Q, instances: 4}
    nvidia-225: {name: GRID T4-4Q, instances: 1}
)";
constexpr char kWithout[] = "name: lone\nhost: {iommu_active: false}";

std::string Ours(int index) { return MdevUuid(*PciAddress::Parse(kT4), "nvidia-222", index); }

struct ParentNode {
  explicit ParentNode(const std::string& more = "")
      : node(Node::MachineText{kWithout + std::string(kDevices) + more}),
        kubelet(node.StartKubelet()) {}

  void Start() { daemon = std::make_unique<Daemon>(node.DaemonArguments({"--config", config})); }
  ProgramResult Run(std::vector<std::string> words) const {
    words.insert(words.end(), {"--config", config});
    return node.Run(std::move(words));
  }
  ProgramResult Release(const std::string& selector) const {
    return Run({"release", selector, "--device-plugin-dir", node.kubelet_dir(),
                "--kubelet-root-dir", node.kubelet_root()});
  }
  std::string Path(const std::string& uuid) const {
    return node.root() + "/sys/bus/mdev/devices/" + uuid;
  }
  bool Has(const std::string& uuid) const { return std::filesystem::exists(Path(uuid)); }
  void Write(const std::string& path, const std::string& text) const {
    INFO(path);
    const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    REQUIRE(::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  std::string CreatePath(const std::string& type) const {
    return node.root() + "/sys/bus/pci/devices/" + kT4 + "/mdev_supported_types/" + type +
           "/create";
  }
  // How often the agent has tried to make one.
  long Tries() const {
    const std::string log = node.Writes();
    long tries = 0;
    for (size_t at = log.find("nvidia-222/create="); at != std::string::npos;
         at = log.find("nvidia-222/create=", at + 1)) {
      ++tries;
    }
    return tries;
  }

  Node node;
  std::unique_ptr<FakeKubelet> kubelet;
  std::unique_ptr<Daemon> daemon;
  std::string config = node.dir().Write(
      "config.yaml",
      "mode: vm-vgpu\nmdev: [{parent: [{vendor: '10de'}], types: {GRID T4-1Q: 2}}]\n");
};

TEST_CASE("VGPU: a node without an IOMMU makes and gives mediated devices", "[node][grpc]") {
  ParentNode lone;
  lone.Start();
  REQUIRE(lone.kubelet->WaitHealthy(kQ1, 2, kLong));
  const auto answer = lone.kubelet->Allocate(kQ1, {Ours(0)});
  INFO(answer.status());
  REQUIRE(answer.ok());
  CHECK(answer->envs().at("MDEV_PCI_RESOURCE_NVIDIA_COM_GRID_T4-1Q") == Ours(0));
  const std::string made = lone.daemon->WaitForLine({"event=bind_done", Ours(0)}, kLong);
  CHECK_THAT(made, Catch::Contains("members=0000:3b:00.0") && !Catch::Contains("group="));
  lone.Write(lone.Path(Ours(1)) + "/remove", "1");
  REQUIRE(Eventually([&] { return lone.Has(Ours(1)); }, kLong));
}

TEST_CASE("VGPU: what is made of a parent without a group is released by its address too",
          "[node]") {
  ParentNode lone;
  const ProgramResult plan = lone.Run({"plan", "--exit-code"});
  CHECK(plan.exit_code == 4);
  CHECK_THAT(plan.out, Catch::Contains("# no group: bind nvidia.com/GRID_T4-1Q"));
  const ProgramResult bound = lone.Run({"bind"});
  CHECK(bound.exit_code == 0);
  CHECK_THAT(bound.out, Catch::Contains(
                            "no group: mediated devices made nvidia.com/GRID_T4-1Q: 0000:3b:00.0"));
  CHECK(lone.Run({"plan", "--exit-code"}).exit_code == 0);
  CHECK_THAT(lone.Run({"explain", kT4}).out, Catch::Contains(Ours(0)));
  CHECK(lone.Release(Ours(1)).exit_code == 0);
  CHECK_FALSE(lone.Has(Ours(1)));
  lone.config = lone.node.dir().Write("other.yaml", "mode: vm-passthrough\n");
  CHECK(lone.Release(kT4).exit_code == 0);
  CHECK_FALSE(lone.Has(Ours(0)));
}

TEST_CASE("VGPU: a parent without a group whose kernel refuses is told by its address", "[node]") {
  ParentNode lone;
  lone.node.Control("fault {device: '0000:3b:00.0', op: create, errno: ENOSPC}");
  const ProgramResult failed = lone.Run({"bind"});
  CHECK(failed.exit_code == 1);
  CHECK_THAT(failed.out, Catch::Contains("no group: failed") && Catch::Contains("probe-refused") &&
                             Catch::Contains("No space left"));
  CHECK_THAT(failed.err, Catch::Contains("members=0000:3b:00.0"));
}

TEST_CASE("VGPU: room that another manager takes between plan and write is told, not fought for",
          "[node][grpc]") {
  ParentNode lone;
  lone.node.Control("fault {device: '0000:3b:00.0', op: create, block: forever, once: true}");
  lone.Start();
  REQUIRE(Eventually([&] { return lone.Tries() == 1; }, kLong));
  lone.Write(lone.CreatePath("nvidia-225"), kForeign);
  lone.node.Control("release-blocked 0000:3b:00.0");
  CHECK_FALSE(lone.daemon
                  ->WaitForLine({"event=bind_failed", "code=probe-refused", "errno=ENOSPC",
                                 "next=\"tried again in"},
                                kLong)
                  .empty());
  CHECK_FALSE(
      lone.daemon->WaitForLine({"event=warning", "2 more of type GRID T4-1Q (nvidia-222)"}, kLong)
          .empty());
  CHECK(lone.Tries() == 1);
  lone.Write(lone.Path(kForeign) + "/remove", "1");
  CHECK(lone.kubelet->WaitHealthy(kQ1, 2, kLong));
}

}  // namespace
}  // namespace vfio_agent
