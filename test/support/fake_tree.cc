#include "test/support/fake_tree.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "sysfs/device/config_space.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

std::string Upper4(const std::string& hex) { return "0000" + absl::AsciiStrToUpper(hex.substr(2)); }

// "pci:v000010DEd00002330sv000010DEsd00001839bc03sc02i00"
std::string Modalias(const FakeDevice& device) {
  const std::string code = absl::AsciiStrToUpper(device.class_code.substr(2));
  return absl::StrFormat("pci:v%sd%ssv000010DEsd00001839bc%ssc%si%s", Upper4(device.vendor),
                         Upper4(device.device), code.substr(0, 2), code.substr(2, 2),
                         code.substr(4, 2));
}

}  // namespace

FakeTree::FakeTree() {
  std::string name = (fs::temp_directory_path() / "vfa-tree-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  root_ = name;
  fs::create_directories(root_ / "sys/bus/pci/devices");
  fs::create_directories(root_ / "sys/kernel/iommu_groups");
  fs::create_directories(root_ / "dev/vfio");
  Driver("vfio-pci").Write("sys/bus/pci/drivers_probe", "");
}

FakeTree::~FakeTree() { fs::remove_all(root_); }

FakeTree& FakeTree::Add(const FakeDevice& device) {
  const std::string above =
      device.parent.empty()
          ? "sys/devices/pci" + device.address.substr(0, device.address.rfind(':'))
          : fs::relative(fs::canonical(root_ / Of(device.parent, "")), fs::canonical(root_))
                .string();
  const std::string dir = (fs::path(above) / device.address).string();
  fs::create_directories(root_ / dir);
  Link("sys/bus/pci/devices/" + device.address, dir);
  AddAttributes(dir, device);
  if (device.group >= 0) AddGroup(dir, device);
  if (!device.driver.empty()) Bind(device.address, device.driver);
  return *this;
}

void FakeTree::AddAttributes(const std::string& dir, const FakeDevice& device) {
  Write(dir + "/config", device.config.text());
  Write(dir + "/modalias", Modalias(device) + "\n");
  Write(dir + "/vendor", device.vendor + "\n").Write(dir + "/device", device.device + "\n");
  Write(dir + "/class", device.class_code + "\n").Write(dir + "/revision", "0xa1\n");
  Write(dir + "/subsystem_vendor", "0x10de\n").Write(dir + "/subsystem_device", "0x1839\n");
  Write(dir + "/numa_node", "-1\n").Write(dir + "/driver_override", "(null)\n");
  Write(dir + "/reset_method", "flr bus\n").Write(dir + "/power_state", "D0\n");
  Write(dir + "/resource",
        "0x00000000d0000000 0x00000000d0ffffff 0x0000000000040200\n"
        "0x0000000000000000 0x0000000000000000 0x0000000000000000\n");
}

void FakeTree::AddGroup(const std::string& dir, const FakeDevice& device) {
  const std::string group = absl::StrFormat("sys/kernel/iommu_groups/%d", device.group);
  Write(group + "/type", "DMA-FQ\n");
  Write(group + "/reserved_regions", "0x00000000fee00000 0x00000000feefffff msi\n");
  Link(group + "/devices/" + device.address, dir);
  Link(dir + "/iommu_group", group);
}

FakeTree& FakeTree::Attribute(const std::string& address, const std::string& name,
                              const std::string& value) {
  return Write(Of(address, name), value + "\n");
}

FakeTree& FakeTree::Driver(const std::string& name) {
  const std::string dir = "sys/bus/pci/drivers/" + name;
  return Write(dir + "/bind", "").Write(dir + "/unbind", "");
}

FakeTree& FakeTree::Bind(const std::string& address, const std::string& driver) {
  Driver(driver);
  const fs::path real = fs::relative(fs::canonical(root_ / Of(address, "")), fs::canonical(root_));
  return Link((real / "driver").string(), "sys/bus/pci/drivers/" + driver);
}

FakeTree& FakeTree::Node(const std::string& name) { return Write("dev/vfio/" + name, ""); }

FakeTree& FakeTree::Write(const std::string& path, std::string_view text) {
  fs::create_directories((root_ / path).parent_path());
  std::ofstream(root_ / path, std::ios::binary) << text;
  return *this;
}

FakeTree& FakeTree::Link(const std::string& path, const std::string& target) {
  const fs::path place = root_ / path;
  fs::create_directories(place.parent_path());
  fs::remove(place);
  fs::create_symlink((root_ / target).lexically_relative(place.parent_path()), place);
  return *this;
}

FakeTree& FakeTree::Remove(const std::string& path) {
  fs::remove_all(root_ / path);
  return *this;
}

std::string FakeTree::Of(const std::string& address, const std::string& name) {
  return "sys/bus/pci/devices/" + address + "/" + name;
}

std::string FakeTree::Read(const std::string& path) const {
  std::ifstream in(root_ / path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool FakeTree::Has(const std::string& path) const {
  return fs::exists(fs::symlink_status(root_ / path));
}

NodeFacts FakeTree::Facts() const {
  const Tree tree = Open();
  ConfigReader config(tree);
  return *TakeNodeFacts(tree, config, ReadModuleFacts(tree));
}

}  // namespace vfio_agent
