// Variant drivers: by the kernel's aliases as its modules have them, by nobody's name.
#include <catch2/catch.hpp>

#include "iommu/plan/plan.h"
#include "iommu/plan/release.h"
#include "sysfs/host/module_facts.h"
#include "test/support/facts.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

// What depmod writes for the variant drivers of Linux 6.12 and later, one line of each; vfio_pci's
// own fits everything.
constexpr char kAliases[] =
    "alias pci:v000015B3d00001021sv*sd*bc*sc*i* mlx5_core\n"
    "alias vfio_pci:v*d*sv*sd*bc*sc*i* vfio_pci\n"
    "alias vfio_pci:v000015B3d0000101Esv*sd*bc*sc*i* mlx5_vfio_pci\n"
    "alias vfio_pci:v000010DEd00002342sv*sd*bc*sc*i* nvgrace_gpu_vfio_pci\n"
    "alias vfio_pci:v000019E5d0000A251sv*sd*bc*sc*i* hisi_acc_vfio_pci\n"
    "alias vfio_pci:v00001DD8d00001003sv*sd*bc*sc*i* pds_vfio_pci\n"
    "alias vfio_pci:v00001AF4d00001041sv*sd*bc*sc*i* virtio_vfio_pci\n"
    "alias vfio_pci:v00008086d00004941sv*sd*bc*sc*i* qat_vfio_pci\n"
    "alias vfio_pci:v00008086d0000E223sv*sd*bc03sc*i* xe_vfio_pci\n";

ModuleFacts Modules() {
  FakeTree tree;
  tree.Write("proc/sys/kernel/osrelease", "6.12.0\n");
  tree.Write("lib/modules/6.12.0/modules.alias", kAliases);
  tree.Write("lib/modules/6.12.0/modules.dep", "kernel/drivers/vfio/pci/vfio-pci.ko:\n");
  return ReadModuleFacts(tree.Open());
}

struct Row {
  const char* modalias;
  const char* loaded;  // the driver's directory, where the module is loaded
  const char* driver;  // which one is taken then
  const char* module;  // and which module is loaded where it is not
};

TEST_CASE("BIND-11: the driver is the one that the kernel's aliases name, spelled as it is there",
          "[iommu]") {
  const auto row =
      GENERATE(Row{"pci:v000015B3d0000101Esv000015B3sd00000007bc02sc00i00", "mlx5_vfio_pci",
                   "mlx5_vfio_pci", "mlx5_vfio_pci"},
               Row{"pci:v000010DEd00002342sv000010DEsd000016EBbc03sc02i00", "nvgrace_gpu_vfio_pci",
                   "nvgrace_gpu_vfio_pci", "nvgrace_gpu_vfio_pci"},
               Row{"pci:v000010DEd00002342sv000010DEsd000016EBbc03sc02i00", "nvgrace-gpu-vfio-pci",
                   "nvgrace-gpu-vfio-pci", "nvgrace_gpu_vfio_pci"},
               Row{"pci:v000019E5d0000A251sv000019E5sd00000000bc0Bsc40i00", "hisi_acc_vfio_pci",
                   "hisi_acc_vfio_pci", "hisi_acc_vfio_pci"},
               Row{"pci:v00001DD8d00001003sv00001DD8sd00004000bc02sc00i00", "pds-vfio-pci",
                   "pds-vfio-pci", "pds_vfio_pci"},
               Row{"pci:v00001AF4d00001041sv00001AF4sd00001100bc02sc00i00", "virtio_vfio_pci",
                   "virtio_vfio_pci", "virtio_vfio_pci"},
               Row{"pci:v00008086d00004941sv00008086sd00000000bc0Bsc40i00", "qat_vfio_pci",
                   "qat_vfio_pci", "qat_vfio_pci"},
               Row{"pci:v00008086d0000E223sv00008086sd00000000bc03sc80i00", "xe-vfio-pci",
                   "xe-vfio-pci", "xe_vfio_pci"},
               // The same id as another kind of device: the alias wants a display controller.
               Row{"pci:v00008086d0000E223sv00008086sd00000000bc02sc00i00", "xe-vfio-pci",
                   "vfio-pci", "vfio_pci"},
               Row{"pci:v000015B3d00001021sv000015B3sd00000041bc02sc07i00", "mlx5_vfio_pci",
                   "vfio-pci", "vfio_pci"});
  CAPTURE(row.modalias, row.loaded);
  NodeFacts facts = Node({Gpu("0000:3b:00.0", 17, "")});
  facts.devices[0].modalias = row.modalias;
  facts.modules = Modules();
  facts.drivers = {"vfio-pci", row.loaded};
  CHECK(GroupOf(DefaultPlan(facts), 17).members.at(0).to == row.driver);
  facts.drivers.clear();
  const Plan plan = DefaultPlan(facts);
  CHECK(plan.refusals.empty());
  CHECK(Shell(GroupOf(plan, 17).actions).starts_with(std::string("modprobe ") + row.module + "\n"));
}

TEST_CASE("a device that a vfio driver of whatever name has is bound already", "[iommu]") {
  NodeFacts facts = Node({Gpu("0000:3b:00.0", 17, "acme-guests"), Audio("0000:3b:00.1", 17)});
  PciDevice& gpu = Find(facts, "0000:3b:00.0");
  CHECK(Roles(GroupOf(DefaultPlan(facts), 17)).find("primary bind") != std::string::npos);
  gpu.vfio_cdev = "vfio0";
  CHECK(Roles(GroupOf(DefaultPlan(facts), 17)) ==
        "0000:3b:00.0 primary keep\n0000:3b:00.1 companion bind vfio-pci");
}

TEST_CASE("a foreign member that a vfio driver of whatever name has spoils no group", "[iommu]") {
  NodeFacts facts = Node({Gpu("0000:3b:00.0", 17), Nvme("0000:3c:00.0", 17, "acme-guests")});
  CHECK(Codes(DefaultPlan(facts).refusals) == "foreign-member 0000:3c:00.0");
  Find(facts, "0000:3c:00.0").vfio_cdev = "vfio1";
  CHECK(DefaultPlan(facts).refusals.empty());
}

}  // namespace
}  // namespace vfio_agent
