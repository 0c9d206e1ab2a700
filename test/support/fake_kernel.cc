#include "test/support/fake_kernel.h"

#include <algorithm>
#include <cerrno>

#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr std::string_view kProbe = "sys/bus/pci/drivers_probe";
constexpr std::string_view kDrivers = "sys/bus/pci/drivers/";
constexpr std::string_view kUnbind = "/unbind";

bool IsVfio(const std::string& driver) { return driver.find("vfio") != std::string::npos; }

}  // namespace

absl::Status FakeKernel::Write(std::string_view path, std::string_view text) {
  const std::string name(path);
  const std::string value(text);
  log_.push_back(name + " <- " + value.substr(0, value.find('\n')));
  if (const auto failure = failures_.find(name); failure != failures_.end()) {
    return ErrnoStatus(failure->second, "write " + name);
  }
  if (!tree_.Has(name)) return ErrnoStatus(ENOENT, "open " + name);
  return Act(name, value);
}

absl::Status FakeKernel::LoadModule(std::string_view module) {
  const std::string name(module);
  log_.push_back("modprobe " + name);
  const auto installed = modules_.find(name);
  if (installed == modules_.end()) return absl::NotFoundError("no module " + name);
  tree_.Driver(installed->second);
  return absl::OkStatus();
}

FakeKernel& FakeKernel::HostDriver(const std::string& address, const std::string& driver) {
  tree_.Driver(driver);
  host_drivers_[address] = driver;
  return *this;
}

FakeKernel& FakeKernel::Installs(const std::string& module, const std::string& driver) {
  modules_[module] = driver;
  return *this;
}

FakeKernel& FakeKernel::Declines(const std::string& driver) {
  declining_.insert(driver);
  return *this;
}

FakeKernel& FakeKernel::Fails(const std::string& path, int error) {
  failures_[path] = error;
  return *this;
}

FakeKernel& FakeKernel::WithoutNodes() {
  makes_nodes_ = false;
  return *this;
}

absl::Status FakeKernel::Act(const std::string& path, const std::string& text) {
  if (path == kProbe) return Probe(text);
  if (path.ends_with("/driver_override")) return SetOverride(path, text);
  if (path.starts_with(kDrivers) && path.ends_with(kUnbind)) {
    return Unbind(path.substr(kDrivers.size(), path.size() - kDrivers.size() - kUnbind.size()),
                  text);
  }
  return ErrnoStatus(EACCES, "write " + path);
}

absl::Status FakeKernel::SetOverride(const std::string& path, const std::string& text) {
  if (!text.empty()) tree_.Write(path, text == "\n" ? "(null)\n" : text);
  return absl::OkStatus();
}

absl::Status FakeKernel::Unbind(const std::string& driver, const std::string& address) {
  if (DriverOf(address) != driver) return ErrnoStatus(ENODEV, "unbind " + address);
  tree_.Remove(FakeTree::Of(address, "driver"));
  const std::string group = GroupOf(address);
  if (IsVfio(driver) && !HasVfioMember(group)) tree_.Remove("dev/vfio/" + group);
  return absl::OkStatus();
}

absl::Status FakeKernel::Probe(const std::string& address) {
  if (!tree_.Has(FakeTree::Of(address, "vendor"))) return ErrnoStatus(ENODEV, "probe " + address);
  const std::string driver = Candidate(address);
  if (!DriverOf(address).empty() || !Takes(driver, address)) return absl::OkStatus();
  tree_.Bind(address, driver);
  if (IsVfio(driver) && makes_nodes_) tree_.Node("vfio").Node(GroupOf(address));
  return absl::OkStatus();
}

std::string FakeKernel::Candidate(const std::string& address) const {
  std::string wanted = tree_.Read(FakeTree::Of(address, "driver_override"));
  if (wanted.ends_with('\n')) wanted.pop_back();
  if (wanted != "(null)") return wanted;
  const auto host = host_drivers_.find(address);
  return host == host_drivers_.end() ? "" : host->second;
}

bool FakeKernel::Takes(const std::string& driver, const std::string& address) const {
  if (driver.empty() || declining_.contains(driver)) return false;
  if (!tree_.Has(std::string(kDrivers) + driver)) return false;
  const bool bridge = (tree_.Read(FakeTree::Of(address, "config")).at(0x0e) & 0x7f) == 1;
  return !IsVfio(driver) || (!GroupOf(address).empty() && !bridge);
}

std::string FakeKernel::DriverOf(const std::string& address) const {
  return tree_.Open().ReadLinkName(FakeTree::Of(address, "driver")).value_or("");
}

std::string FakeKernel::GroupOf(const std::string& address) const {
  return tree_.Open().ReadLinkName(FakeTree::Of(address, "iommu_group")).value_or("");
}

bool FakeKernel::HasVfioMember(const std::string& group) const {
  const auto members = tree_.Open().List("sys/kernel/iommu_groups/" + group + "/devices");
  return members.ok() && std::ranges::any_of(*members, [this](const std::string& member) {
           return IsVfio(DriverOf(member));
         });
}

}  // namespace vfio_agent
