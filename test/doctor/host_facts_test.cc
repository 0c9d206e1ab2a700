// What is read of a node beyond PCI: from trees that look like one.
#include <array>
#include <catch2/catch.hpp>

#include "absl/strings/str_join.h"
#include "deviceplugin/kubelet/socket_probe.h"
#include "sysfs/host/host_firmware.h"
#include "sysfs/host/host_memory.h"
#include "sysfs/host/host_modules.h"
#include "sysfs/host/host_processes.h"
#include "sysfs/host/host_view.h"
#include "test/doctor/listening.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

constexpr std::array<std::string_view, 2> kAsked = {"vfio_pci", "nouveau"};

HostModules ReadModules(const FakeTree& fake, std::string_view command_line = "") {
  const Tree tree = fake.Open();
  return ReadHostModules(tree, &tree, command_line, kAsked);
}

TEST_CASE("virtualization is the first processor's vmx or svm", "[doctor]") {
  FakeTree fake;
  fake.Write("proc/cpuinfo",
             "processor\t: 0\nvendor_id\t: AuthenticAMD\nvmx flags\t: vnmi\n"
             "flags\t\t: fpu svm hypervisor\n");
  const FirmwareFacts facts = ReadFirmwareFacts(fake.Open());
  CHECK(facts.maker == CpuMaker::kAmd);
  CHECK(facts.flag == "svm");
  CHECK(facts.virtualization.is(true));
  CHECK(facts.is_guest);
  fake.Write("proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu\nvmx flags\t: vnmi\n");
  CHECK(ReadFirmwareFacts(fake.Open()).virtualization.is(false));
  fake.Write("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n");
  CHECK(ReadFirmwareFacts(fake.Open()).virtualization.absent());
  CHECK(ReadFirmwareFacts(fake.Open()).maker == CpuMaker::kArm);
  fake.Remove("proc/cpuinfo");
  CHECK(ReadFirmwareFacts(fake.Open()).virtualization.unknown());
}

TEST_CASE("a masked sys/firmware is not a firmware without an IOMMU", "[doctor]") {
  FakeTree fake;
  fake.Write("sys/firmware/acpi/tables/DMAR", "").Write("sys/firmware/acpi/tables/APIC", "");
  fake.Write("dev/kvm", "");
  const FirmwareFacts facts = ReadFirmwareFacts(fake.Open());
  CHECK(absl::StrJoin(facts.iommu_tables.value(), ",") == "DMAR");
  CHECK(facts.kvm_node);
  fake.Remove("sys/firmware/acpi/tables/DMAR");
  const FirmwareFacts none = ReadFirmwareFacts(fake.Open());
  CHECK((none.iommu_tables.known() && none.iommu_tables.value().empty()));
  fake.Remove("sys/firmware/acpi");
  CHECK(ReadFirmwareFacts(fake.Open()).iommu_tables.unknown());
  fake.Write("sys/firmware/devicetree/base/model", "board");
  CHECK(ReadFirmwareFacts(fake.Open()).iommu_tables.absent());
}

TEST_CASE("a module is loaded, built in or installed, whatever its dashes", "[doctor]") {
  FakeTree fake;
  fake.Write("proc/sys/kernel/osrelease", "6.1.0\n");
  fake.Write("lib/modules/6.1.0/modules.dep",
             "kernel/drivers/vfio/pci/vfio-pci.ko.xz: kernel/drivers/vfio/vfio.ko.xz\n");
  fake.Write("lib/modules/6.1.0/modules.builtin", "kernel/drivers/gpu/drm/nouveau/nouveau.ko\n");
  const HostModules modules = ReadModules(fake);
  CHECK(modules.lists_known);
  CHECK(modules.states.at("vfio_pci") == ModuleState{.installed = true});
  CHECK(modules.states.at("nouveau") == ModuleState{.built_in = true});
  fake.Write("sys/module/vfio_pci/refcnt", "0\n");
  CHECK(ReadModules(fake).states.at("vfio_pci").loaded);
  CHECK_FALSE(ReadModules(FakeTree()).lists_known);
}

TEST_CASE("what keeps a module out is told by its place", "[doctor]") {
  FakeTree fake;
  fake.Write("etc/modprobe.d/a.conf", "# blacklist vfio-pci\nblacklist nouveau\n");
  fake.Write("usr/lib/modprobe.d/b.conf", "install vfio-pci /bin/false\n");
  fake.Write("usr/lib/modprobe.d/c.conf", "install nouveau /sbin/modprobe --ignore nouveau\n");
  fake.Write("usr/lib/modprobe.d/README", "blacklist vfio-pci\n");
  const HostModules modules = ReadModules(fake);
  CHECK(absl::StrJoin(modules.states.at("nouveau").blacklisted, ",") == "/etc/modprobe.d/a.conf");
  CHECK(modules.states.at("nouveau").blocked.empty());
  CHECK(absl::StrJoin(modules.states.at("vfio_pci").blocked, ",") == "/usr/lib/modprobe.d/b.conf");
  CHECK(modules.states.at("vfio_pci").blacklisted.empty());
}

TEST_CASE("a file in etc hides the one of the same name that came with a package", "[doctor]") {
  FakeTree fake;
  fake.Write("usr/lib/modprobe.d/x.conf", "blacklist vfio-pci\n");
  CHECK_FALSE(ReadModules(fake).states.at("vfio_pci").blacklisted.empty());
  fake.Write("etc/modprobe.d/x.conf", "");
  CHECK(ReadModules(fake).states.at("vfio_pci").blacklisted.empty());
}

TEST_CASE("the command line's blacklists count; the kernel's own is final", "[doctor]") {
  const HostModules modules =
      ReadModules(FakeTree(), "quiet modprobe.blacklist=nouveau,x module_blacklist=vfio-pci");
  CHECK(modules.states.at("nouveau").blacklisted.size() == 1);
  CHECK(modules.states.at("vfio_pci").blocked.size() == 1);
  FakeTree locked;
  locked.Write("proc/sys/kernel/modules_disabled", "1\n");
  CHECK(ReadModules(locked).loading_off);
  const Tree tree = locked.Open();
  CHECK_FALSE(ReadHostModules(tree, nullptr, "", kAsked).rules_known);
}

TEST_CASE("swap areas are the lines below the heading", "[doctor]") {
  const std::vector<SwapArea> areas = ParseSwapAreas(
      "Filename\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
      "/dev/sda2  partition\t8388604\t0\t-2\n/a\\040b file 1024 0 -3\n");
  REQUIRE(areas.size() == 2);
  CHECK(areas[0] == SwapArea{.name = "/dev/sda2", .type = "partition", .size_kb = 8388604});
  CHECK(areas[1].name == "/a\\040b");
  CHECK(ParseSwapAreas("Filename\t\t\tType\n").empty());
  CHECK(ReadMemoryFacts(FakeTree().Open()).swaps.absent());
}

TEST_CASE("huge pages are counted for each node and size", "[doctor]") {
  FakeTree fake;
  for (const char* node : {"node0", "node1"}) {
    const std::string dir = std::string("sys/devices/system/node/") + node + "/hugepages/";
    fake.Write(dir + "hugepages-1048576kB/nr_hugepages",
               node == std::string("node1") ? "4\n" : "0\n");
    fake.Write(dir + "hugepages-1048576kB/free_hugepages", "1\n");
  }
  fake.Write("proc/sys/kernel/numa_balancing", "1\n");
  const MemoryFacts facts = ReadMemoryFacts(fake.Open());
  CHECK(facts.numa_nodes == 2);
  CHECK(facts.numa_balancing.is(true));
  REQUIRE(facts.huge_pages.size() == 2);
  CHECK(facts.huge_pages[1] == HugePages{.node = 1, .size_kb = 1048576, .reserved = 4, .free = 1});

  FakeTree flat;  // a kernel without NUMA
  flat.Write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "7\n");
  const MemoryFacts whole = ReadMemoryFacts(flat.Open());
  REQUIRE(whole.huge_pages.size() == 1);
  CHECK(whole.huge_pages[0] == HugePages{.size_kb = 2048, .reserved = 7});
}

TEST_CASE("processes are found by the start of their names, with limit and owner", "[doctor]") {
  FakeTree fake;
  CHECK_FALSE(ReadHostProcesses(fake.Open(), kAsked).complete);  // none: a copy without them
  fake.Write("proc/12/comm", "kubelet\n").Write("proc/13/comm", "bash\n");
  fake.Write("proc/12/cgroup", "0::/system.slice/kubelet.service\n");
  fake.Write("proc/12/limits",
             "Limit                     Soft Limit           Hard Limit           Units\n"
             "Max locked memory         8388608              unlimited            bytes\n");
  fake.Write("proc/12/cmdline", std::string("kubelet\0--config=/k.yaml\0", 24));
  constexpr std::array<std::string_view, 1> kKubelet = {"kubel"};
  const HostProcesses processes = ReadHostProcesses(fake.Open(), kKubelet);
  CHECK(processes.complete);
  REQUIRE(processes.list.size() == 1);
  CHECK(processes.list[0].owner == "kubelet.service");
  CHECK(processes.list[0].locked_memory_bytes.is(8388608));
  CHECK(absl::StrJoin(ReadArguments(fake.Open(), 12), "|") == "kubelet|--config=/k.yaml");
  CHECK(ParseLockedMemory("Max locked memory  unlimited unlimited bytes\n").is(kUnlimited));
  CHECK(ParseLockedMemory("Max open files 1 2 files\n").unknown());
}

TEST_CASE("two processes see the same root where the same is mounted on it", "[doctor]") {
  constexpr char kHost[] =
      "22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
      "23 22 0:21 / /proc rw - proc proc rw\n";
  CHECK(ParseRootMount(kHost) == "259:2 /");
  CHECK(ParseRootMount("900 800 0:77 / / ro,relatime - overlay overlay rw\n") == "0:77 /");
  CHECK(ParseRootMount("1 1 0:1 / / rw - rootfs rootfs rw\n" + std::string(kHost)) == "259:2 /");
  CHECK(ParseRootMount("22 1 259:2").empty());
  CHECK(SeesHostFiles(FakeTree().Open()));
}

TEST_CASE("a socket answers, is dead, is absent, or is no socket", "[doctor]") {
  FakeTree fake;
  const Tree tree = fake.Open();
  CHECK(ProbeSocket(tree, "a.sock", true).state == SocketState::kAbsent);
  fake.Write("a.sock", "");
  CHECK(ProbeSocket(tree, "a.sock", true).state == SocketState::kUnclear);
  CHECK(ProbeSocket(tree, "a.sock", false).state == SocketState::kPresent);
  fake.Remove("a.sock");
  {
    const Listening listening((fake.root() / "a.sock").string());
    CHECK(ProbeSocket(tree, "a.sock", true).state == SocketState::kAnswers);
    fake.Link("b.sock", "/a.sock");  // of the tree, not of this machine
    CHECK(ProbeSocket(tree, "b.sock", true).state == SocketState::kAnswers);
  }
  CHECK(ProbeSocket(tree, "a.sock", true).state == SocketState::kDead);
  CHECK(ProbeSocket(tree, "a.sock", true).path == "/a.sock");
}

}  // namespace
}  // namespace vfio_agent
