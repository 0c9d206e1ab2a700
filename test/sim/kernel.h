// Kernel: a node's /sys, /proc, /dev and /lib/modules that answer as Linux does.
//
// The tree (Vfs) is what readers see; the writes to a few attributes act: bind, unbind,
// drivers_probe, driver_override, new_id, sriov_numvfs, remove, rescan. No FUSE here: tests call
// Read() and Write() directly. Thread-safe; a Write() may block as long as the kernel's would.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "test/sim/config_image.h"
#include "test/sim/driver_table.h"
#include "test/sim/fault.h"
#include "test/sim/machine.h"
#include "test/sim/vfs.h"

namespace vfio_agent::sim {

// One PCI function, present or not.
struct Device {
  MachineDevice facts;
  std::string path;  // of its directory, from the root: "sys/devices/pci0000:00/..."
  bool present = false;
  bool fell_off = false;  // gone for good: a rescan does not find it
  std::string driver;     // empty: unbound
  std::string driver_override;
  int vfio_index = -1;  // the N of vfioN while bound to a vfio driver
  int num_vfs = 0;
  int vgpu_type = 0;  // 0: none
  bool vfs_autoprobe = true;
  // The kernel's device lock, for as long as an operation on the device waits for something.
  // Everything that takes it waits too: bind, unbind, probe, and driver_override both ways.
  bool locked = false;
  bool released = false;  // ".control release-blocked": whatever waits now goes on
};
using DevicePtr = std::shared_ptr<Device>;

struct Group {
  MachineGroup facts;
  std::set<std::string> members;  // addresses
  std::set<int> holders;          // pids that have the group's devices open
};

// A mediated device.
struct Mdev {
  std::string parent;  // address
  std::string type;
  int group = 0;
  int vfio_index = -1;
};

// One write, for ".log".
struct LogEntry {
  std::string path;
  std::string text;
  std::string result;  // "running", "ok", or the errno's name
};

class Kernel {
 public:
  explicit Kernel(Machine machine);

  // One write(2). 0 or an errno. Links in `path` are followed.
  int Write(std::string_view path, std::string_view text, const Caller& caller = {});

  // The whole text of a file; of a link its target.
  Shown Read(std::string_view path, const Caller& caller = {});
  Shown ReadLink(std::string_view path);

  // A copy without children and functions; nullopt where there is none. Links are not followed.
  std::optional<Node> Stat(std::string_view path);
  std::vector<std::string> List(std::string_view path);
  bool Exists(std::string_view path);

  // Calls `visit` with every node, its path and, for a readable file, its text, in order and
  // while nothing changes.
  using Visitor =
      std::function<void(const std::string& path, const Node& node, const std::string& text)>;
  void Visit(const Visitor& visit);

  // One line of ".control"; 0 or an errno. README.md lists the commands.
  int Control(std::string_view command);

  // Lets every blocked call return EINTR, now and later.
  void ShutDown();
  bool quit_asked();

  std::string Log();

 private:
  // kernel.cc
  void Boot(Call& call);
  void BootDevice(const MachineDevice& facts);
  DevicePtr Find(std::string_view address);
  DevicePtr FindWritten(std::string_view text);
  int StoreAt(const std::string& path, std::string_view text, Call& call);

  // control.cc
  int RunCommand(const std::vector<std::string>& words, std::string_view rest, Call& call);
  int RunDeviceCommand(const std::vector<std::string>& words, Call& call);

  // wait.cc
  int WaitUntil(const std::function<bool()>& ready, bool killable, Call& call);
  int Lock(const DevicePtr& device, Call& call);
  void Unlock(const DevicePtr& device);
  int Suffer(const DevicePtr& device, const std::string& op, Call& call);
  int SufferRead(const std::string& path, Call& call);
  int WaitForHolders(const DevicePtr& device, Call& call);

  // binding.cc
  int StoreBind(const std::string& driver, std::string_view text, Call& call);
  int StoreUnbind(const std::string& driver, std::string_view text, Call& call);
  int StoreProbe(std::string_view text, Call& call);
  int StoreOverride(const DevicePtr& device, std::string_view text, Call& call);
  int StoreNewId(const std::string& driver, std::string_view text, bool add, Call& call);
  bool Matches(const Driver& driver, const Device& device) const;
  int ProbeError(const Driver& driver, const Device& device) const;
  int ProbeDriver(const DevicePtr& device, const std::string& driver, Call& call);
  int OfferToDrivers(const DevicePtr& device, Call& call);
  int Release(const DevicePtr& device, Call& call);

  // drivers.cc
  Driver& LoadDriver(const std::string& name);
  void UnloadDriver(const std::string& name);
  void Attach(const DevicePtr& device, const std::string& driver);
  void Detach(const DevicePtr& device);

  // groups.cc
  void JoinGroup(const Device& device);
  void LeaveGroup(const Device& device);
  void ShowGroup(int number);
  int FreeGroupNumber() const;
  void AddVfioFiles(const DevicePtr& device);
  int TakeVfioIndex();
  // vfio-dev below the device at `path`, and its node, as far as this kernel has them.
  void ShowCdev(const std::string& path, int index);
  void HideCdevNode(int index);
  void RemoveVfioFiles(const DevicePtr& device);
  void ShowGroupNode(int number);
  bool Held(const Device& device) const;

  // device_files.cc
  void ShowDevice(const DevicePtr& device);
  void HideDevice(const DevicePtr& device);
  void ShowIdentity(const DevicePtr& device);
  void ShowState(const DevicePtr& device);
  void ShowActions(const DevicePtr& device);
  void ShowPower(const DevicePtr& device);
  std::string PathOf(const MachineDevice& facts) const;
  ConfigContext ContextOf(const Device& device) const;
  PortType PortOf(const Device& device) const;
  std::string ConfigOf(const Device& device) const;

  // hotplug.cc
  int StoreRemove(const DevicePtr& device, std::string_view text, Call& call);
  void Appear(const DevicePtr& device, Call& call);
  void Vanish(const DevicePtr& device);
  int StoreRescan(std::string_view text, Call& call);

  // sriov.cc
  void ShowSriov(const DevicePtr& device);
  int StoreNumVfs(const DevicePtr& device, std::string_view text, Call& call);
  DevicePtr MakeVf(const Device& physical, int index) const;
  void EnableVfs(const DevicePtr& device, int count, Call& call);
  int DisableVfs(const DevicePtr& device, Call& call);
  std::string VfAddress(const Device& physical, int index) const;
  void ShowPhysfnLinks(const DevicePtr& device);

  // mdev.cc
  void ShowMdevTypes(const DevicePtr& device);
  void HideMdevTypes(const DevicePtr& device);
  int AvailableMdevs(const std::string& parent, const std::string& type);
  int StoreMdevCreate(const DevicePtr& device, const std::string& type, std::string_view text,
                      Call& call);
  int StoreMdevRemove(const std::string& uuid, std::string_view text, Call& call);
  void ShowMdev(const std::string& uuid);
  void HideMdev(const std::string& uuid);
  void LeaveMdevBus(const std::string& uuid, const Mdev& mdev);

  // vgpu.cc
  void ShowVgpu(const DevicePtr& device);
  void HideVgpu(const DevicePtr& device);
  bool HasVgpuRoom(const Device& device, const MachineVgpuType& type);
  std::string CreatableVgpus(const Device& device);
  int StoreVgpuType(const DevicePtr& device, std::string_view text, Call& call);

  // node_files.cc
  void ShowNode();
  void ShowBus();
  void ShowIommu();
  std::string IommuPath() const;
  void ShowNuma();
  void ShowProc();
  void ShowModules();
  void ShowProcess(const MachineProcess& process);
  void ShowExtras();
  int Hold(int group, int pid, const std::string& comm);
  int Free(int group);

  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  bool shut_down_ = false;
  bool quit_ = false;
  bool drivers_autoprobe_ = true;
  Vfs vfs_;
  Machine machine_;
  FaultTable faults_;
  std::map<std::string, DevicePtr, std::less<>> devices_;
  std::map<std::string, std::vector<std::string>> children_;  // by address of the bridge
  std::map<std::string, Driver> drivers_;                     // the loaded ones
  std::vector<std::string> driver_order_;                     // as they were loaded
  std::map<int, Group> groups_;
  std::map<std::string, Mdev, std::less<>> mdevs_;  // by uuid
  std::set<int> vfio_indices_;
  std::map<int, MachineProcess> processes_;
  std::vector<LogEntry> log_;
};

}  // namespace vfio_agent::sim
