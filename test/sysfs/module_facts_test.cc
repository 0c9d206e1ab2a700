#include "sysfs/host/module_facts.h"

#include <catch2/catch.hpp>

#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

constexpr char kDir[] = "lib/modules/6.1.0-57-amd64/";

struct Host : FakeTree {
  Host() { Write("proc/sys/kernel/osrelease", "6.1.0-57-amd64\n"); }
  ModuleFacts With(const std::string& file, const std::string& text) {
    return ReadModuleFacts(Write(kDir + file, text).Open());
  }
};

TEST_CASE("vfio-pci is installed when modules.dep lists it, packed or not", "[sysfs]") {
  const std::string ending = GENERATE(".ko", ".ko.xz", ".ko.zst", ".ko.gz");
  CAPTURE(ending);
  Host host;
  const ModuleFacts facts = host.With(
      "modules.dep", "kernel/drivers/vfio/vfio" + ending + ":\nkernel/drivers/vfio/pci/vfio-pci" +
                         ending + ": kernel/drivers/vfio/vfio" + ending + "\n");
  CHECK(facts.vfio_pci_installed);
  CHECK(facts.release == "6.1.0-57-amd64");
}

TEST_CASE("vfio-pci that is built in is installed", "[sysfs]") {
  const std::string after = GENERATE("", "\n", "\nkernel/fs/x.ko\n");
  Host host;
  CHECK(host.With("modules.builtin", "kernel/drivers/vfio/pci/vfio-pci.ko" + after)
            .vfio_pci_installed);
}

TEST_CASE("other modules with vfio-pci in their names are not vfio-pci", "[sysfs]") {
  const std::string line =
      GENERATE("kernel/drivers/vfio/pci/mlx5/mlx5-vfio-pci.ko:\n",
               "kernel/drivers/vfio/pci/vfio-pci-core.ko:\n", "kernel/drivers/vfio-pci/x.ko:\n");
  CAPTURE(line);
  Host host;
  CHECK_FALSE(host.With("modules.dep", line).vfio_pci_installed);
}

TEST_CASE("vfio's own aliases are read as patterns over a device's modalias", "[sysfs]") {
  Host host;
  const ModuleFacts facts =
      host.With("modules.alias",
                "# Aliases extracted from modules themselves.\n"
                "alias pci:v000010DEd*sv*sd*bc03sc02i00* nvidia\n"
                "alias vfio_pci:v000010DEd00002342sv*sd*bc*sc*i* nvgrace_gpu_vfio_pci\n"
                "alias vfio_pci:v000015B3d0000101Esv*sd*bc*sc*i* mlx5_vfio_pci\n"
                "alias vfio_pci:broken\n");
  CHECK(facts.vfio_aliases ==
        std::vector<VfioAlias>{
            {.pattern = "pci:v000010DEd00002342sv*sd*bc*sc*i*", .module = "nvgrace_gpu_vfio_pci"},
            {.pattern = "pci:v000015B3d0000101Esv*sd*bc*sc*i*", .module = "mlx5_vfio_pci"}});
}

TEST_CASE("a module whose name could be a path or a command offers nothing", "[sysfs]") {
  const std::string name = GENERATE("../x", "a;b", "$(x)", "a/b");
  CAPTURE(name);
  CHECK(Host().With("modules.alias", "alias vfio_pci:v* " + name + "\n").vfio_aliases.empty());
}

TEST_CASE("without the host's modules the answer is empty and no error", "[sysfs]") {
  Host host;
  CHECK(ReadModuleFacts(host.Open()) == ModuleFacts{.release = "6.1.0-57-amd64"});
  CHECK(ReadModuleFacts(FakeTree().Open()) == ModuleFacts{});
}

TEST_CASE("a kernel release that is a path is not followed", "[sysfs]") {
  Host host;
  host.Write("proc/sys/kernel/osrelease", "../../secret\n");
  host.Write("secret/modules.dep", "kernel/drivers/vfio/pci/vfio-pci.ko:\n");
  CHECK(ReadModuleFacts(host.Open()) == ModuleFacts{});
}

}  // namespace
}  // namespace vfio_agent
