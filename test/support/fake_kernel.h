// FakeKernel: a Writer that notes every write and then changes a FakeTree as the kernel would.
//
//   driver_override          "name\n" sets it; "\n" takes it away (the file then reads "(null)");
//                            an empty write does nothing
//   drivers/<name>/unbind    the device's driver link goes; ENODEV where <name> does not have it.
//                            The last member of a group that leaves vfio takes dev/vfio/<group>
//                            with it
//   drivers_probe            always succeeds for a device that is there (ENODEV otherwise), whether
//                            a driver takes it or not: it is bound already; or the override names
//                            a driver, and only that one; or the host driver of HostDriver().
//                            A vfio driver takes no device without a group and none that is a
//                            bridge; its first member of a group makes dev/vfio/<group>
//   LoadModule               makes the driver directory of Installs(); NotFound for other modules
//
// Everything else is refused with EACCES: the agent has no business there.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sysfs/writer.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {

class FakeKernel final : public Writer {
 public:
  explicit FakeKernel(FakeTree& tree) : tree_(tree) {}

  absl::Status Write(std::string_view path, std::string_view text) override;
  absl::Status LoadModule(std::string_view module) override;

  // The driver that claims the device where no override stands against it.
  FakeKernel& HostDriver(const std::string& address, const std::string& driver);
  // Loading `module` makes the directory sys/bus/pci/drivers/<driver>.
  FakeKernel& Installs(const std::string& module, const std::string& driver);
  // `driver` takes no device from now on.
  FakeKernel& Declines(const std::string& driver);
  // Writes to `path` fail with `error`, an errno.
  FakeKernel& Fails(const std::string& path, int error);
  // No dev/vfio node is made: a /dev that is not the host's.
  FakeKernel& WithoutNodes();

  // "sys/bus/pci/drivers_probe <- 0000:3b:00.0", newlines left out, in order.
  const std::vector<std::string>& log() const { return log_; }

 private:
  absl::Status Act(const std::string& path, const std::string& text);
  absl::Status SetOverride(const std::string& path, const std::string& text);
  absl::Status Unbind(const std::string& driver, const std::string& address);
  absl::Status Probe(const std::string& address);
  std::string Candidate(const std::string& address) const;
  bool Takes(const std::string& driver, const std::string& address) const;
  std::string DriverOf(const std::string& address) const;
  std::string GroupOf(const std::string& address) const;
  bool HasVfioMember(const std::string& group) const;

  FakeTree& tree_;
  std::vector<std::string> log_;
  std::map<std::string, std::string> host_drivers_;
  std::map<std::string, std::string> modules_;
  std::set<std::string> declining_;
  std::map<std::string, int> failures_;
  bool makes_nodes_ = true;
};

}  // namespace vfio_agent
