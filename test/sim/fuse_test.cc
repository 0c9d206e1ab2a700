#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "test/sim/kernel_fixture.h"
#include "test/sim/mount.h"

namespace vfio_agent::sim {
namespace {

namespace fs = std::filesystem;

constexpr char kGpu[] = "0000:1b:00.0";
constexpr char kOtherGpu[] = "0000:43:00.0";

std::unique_ptr<SimMount> MountNode() {
  auto mount = SimMount::Start({"--machine", std::string(MACHINES) + "/hgx-8gpu.yaml"});
  INFO(mount.status().ToString());
  REQUIRE(mount.ok());
  return *std::move(mount);
}

std::string DriverBelow(const SimMount& mount, const std::string& address) {
  std::error_code none;
  return fs::read_symlink(fs::path(mount.root()) / DevicePath(address) / "driver", none)
      .filename()
      .string();
}

// A process that writes and then exits with the errno.
pid_t WriteInChild(const SimMount& mount, const std::string& path, const std::string& text) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(mount.Write(path, text));
  return child;
}

bool LogSays(const SimMount& mount, const std::string& line) {
  return mount.Read(".log").value_or("").find(line) != std::string::npos;
}

TEST_CASE("a GPU moves to vfio-pci by plain file operations", "[fuse]") {
  const auto mount = MountNode();
  const std::string device = DevicePath(kGpu);
  CHECK(mount->Read(device + "/driver_override").value_or("") == "(null)\n");
  CHECK(mount->Write(device + "/driver_override", "vfio-pci") == 0);
  CHECK(mount->Write(device + "/driver/unbind", kGpu) == 0);
  CHECK(DriverBelow(*mount, kGpu).empty());
  CHECK(mount->Write("sys/bus/pci/drivers_probe", kGpu) == 0);
  CHECK(DriverBelow(*mount, kGpu) == "vfio-pci");
  const std::string group =
      fs::read_symlink(fs::path(mount->root()) / device / "iommu_group").filename().string();
  struct stat node {};
  REQUIRE(::stat((mount->root() + "/dev/vfio/" + group).c_str(), &node) == 0);
  CHECK(S_ISCHR(node.st_mode));
  CHECK(mount->Read(".log").value_or("") ==
        "1 sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:1b:00.0/"
        "driver_override=vfio-pci ok\n"
        "2 sys/bus/pci/drivers/nvidia/unbind=0000:1b:00.0 ok\n"
        "3 sys/bus/pci/drivers_probe=0000:1b:00.0 ok\n");
}

TEST_CASE("attributes answer to open as those of sysfs do", "[fuse]") {
  const auto mount = MountNode();
  const std::string device = DevicePath(kGpu);
  CHECK(mount->Write(device + "/vendor", "x") == EACCES);
  CHECK(mount->Read("sys/bus/pci/drivers_probe").status().code() ==
        absl::StatusCode::kPermissionDenied);
  CHECK(mount->Write(device + "/nosuch", "x") == ENOENT);
  const std::string made = mount->root() + "/" + device + "/made";
  CHECK(::open(made.c_str(), O_WRONLY | O_CREAT, 0644) == -1);
  CHECK(errno == EACCES);
  CHECK(::mkdir(made.c_str(), 0755) == -1);
  CHECK(errno == EPERM);
  CHECK(mount->Read(device + "/config").value_or("").size() == 4096);
  CHECK(fs::file_size(fs::path(mount->root()) / device / "config") == 4096);
}

TEST_CASE("an attribute that was open when its device went answers ENODEV", "[fuse]") {
  const auto mount = MountNode();
  const std::string path = mount->root() + "/" + DevicePath(kGpu) + "/numa_node";
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(file.valid());
  REQUIRE(mount->Control(std::string("remove ") + kGpu) == 0);
  char buffer[16];
  CHECK(::read(file.get(), buffer, sizeof buffer) == -1);
  CHECK(errno == ENODEV);
}

TEST_CASE("one blocked unbind leaves the driver's other devices free", "[fuse]") {
  const auto mount = MountNode();
  REQUIRE(mount->Control("fault {device: '0000:1b:00.0', op: unbind, block: forever}") == 0);
  const pid_t child = WriteInChild(*mount, "sys/bus/pci/drivers/nvidia/unbind", kGpu);
  REQUIRE(Eventually([&] { return LogSays(*mount, "=0000:1b:00.0 running"); }));
  CHECK(mount->Write("sys/bus/pci/drivers/nvidia/unbind", kOtherGpu) == 0);
  CHECK(DriverBelow(*mount, kOtherGpu).empty());
  REQUIRE(mount->Control("release-blocked 0000:1b:00.0") == 0);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(DriverBelow(*mount, kGpu).empty());
}

TEST_CASE("SIGKILL ends a blocked writer and the device stays bound", "[fuse]") {
  const auto mount = MountNode();
  REQUIRE(mount->Control("fault {device: '0000:1b:00.0', op: unbind, block: forever}") == 0);
  const pid_t child = WriteInChild(*mount, "sys/bus/pci/drivers/nvidia/unbind", kGpu);
  REQUIRE(Eventually([&] { return LogSays(*mount, "=0000:1b:00.0 running"); }));
  REQUIRE(::kill(child, SIGKILL) == 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(Eventually([&] { return LogSays(*mount, "=0000:1b:00.0 EINTR"); }));
  CHECK(DriverBelow(*mount, kGpu) == "nvidia");
}

TEST_CASE("a signal that the writer handles does not end its unbind", "[fuse]") {
  const auto mount = MountNode();
  REQUIRE(mount->Control("fault {device: '0000:1b:00.0', op: unbind, block: forever}") == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGUSR1, [](int) {});
    ::_exit(mount->Write("sys/bus/pci/drivers/nvidia/unbind", kGpu));
  }
  REQUIRE(Eventually([&] { return LogSays(*mount, "=0000:1b:00.0 running"); }));
  REQUIRE(::kill(child, SIGUSR1) == 0);
  REQUIRE(mount->Control("release-blocked 0000:1b:00.0") == 0);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("sim-node unmounts and ends well although a write blocks", "[fuse]") {
  const bool by_command = GENERATE(false, true);
  const auto mount = MountNode();
  REQUIRE(mount->Control("fault {device: '0000:1b:00.0', op: unbind, block: forever, "
                         "unkillable: true}") == 0);
  const pid_t child = WriteInChild(*mount, "sys/bus/pci/drivers/nvidia/unbind", kGpu);
  REQUIRE(Eventually([&] { return LogSays(*mount, "=0000:1b:00.0 running"); }));
  if (by_command) CHECK(mount->Control("quit") == 0);
  CHECK(mount->Stop(by_command ? 0 : SIGTERM) == 0);
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == EINTR);
  CHECK(fs::is_empty(mount->root()));
}

TEST_CASE("sim-node unmounts and ends well when its input ends", "[fuse]") {
  const auto mount = MountNode();
  mount->CloseInput();
  CHECK(mount->Stop(0) == 0);
  CHECK(fs::is_empty(mount->root()));
}

}  // namespace
}  // namespace vfio_agent::sim
