#include "agent/snapshot/masks.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "agent/snapshot/mask_text.h"

namespace vfio_agent {
namespace {

constexpr char kIds[] = "MAC addresses, UUIDs and ids of containers";
constexpr char kAddresses[] = "addresses of the network";
constexpr char kHardware[] = "addresses of adapters (MAC, GUID, GID)";
constexpr char kSerial[] = "serial numbers";
constexpr char kKubelet[] = "the kubelet's files but for what bears on devices";
constexpr char kNever[] = "what is never taken";

// Some of these files no command reads yet: a row is there before its reader is.
constexpr std::array kMasks = std::to_array<Mask>({
    {"sys/*/config", "config space but for what the program decodes", MaskConfigSpace},
    {"sys/*/net/*/address", kHardware, MaskHex},
    {"sys/*/net/*/perm_hwaddr", kHardware, MaskHex},
    {"sys/*/net/*/phys_switch_id", kHardware, MaskHex},
    {"sys/*/infiniband/*guid", kHardware, MaskHex},
    {"sys/*/infiniband/*/gids/*", kHardware, MaskHex},
    {"sys/*/infiniband/*/node_desc", kNever, DropAll},
    {"sys/*/serial", kSerial, DropAll},
    {"sys/*/serial_number", kSerial, DropAll},
    {"sys/*/unique_id", kSerial, DropAll},
    {"sys/*/wwid", kSerial, DropAll},
    {"sys/*/vpd*", kSerial, DropAll},
    {"sys/*/dmi/*", kSerial, DropAll},
    {"sys/firmware/*", kNever, DropAll},
    {"sys/*/uevent", "all but a device node's name", KeepNode},
    {"sys/*/dm/name", "names of volumes", MaskName},
    {"sys/*/dm/uuid", "names of volumes", MaskWords},
    {"proc/cmdline", "values on the kernel command line", MaskCommandLine},
    {"proc/[0-9]*/cmdline", "command lines but for the kubelet's flags about devices",
     KeepKubeletArguments},
    {"proc/[0-9]*/environ", kNever, DropAll},
    {"proc/*mountinfo", "mount points and what is mounted there", MaskMounts},
    {"proc/swaps", "paths of swap files", MaskSwaps},
    {"proc/*net/route", kAddresses, MaskRoutes},
    {"proc/*net/ipv6_route", kAddresses, MaskRoutes6},
    {"proc/*net/if_inet6", kAddresses, MaskAddresses6},
    {"proc/[0-9]*/cgroup", "ids of pods and containers, names of machines", MaskCgroup},
    {"proc/[0-9]*/comm", "names of programs that are not well known", MaskProgram},
    {"proc/[0-9]*/fd/*", "paths of open files", MaskOpenFile},
    {"proc/iomem", "where the kernel is in memory", DropKernelPlace},
    {"proc/driver/nvidia/*/information", "UUIDs of cards", KeepCard},
    {"proc/sys/kernel/hostname", "host names", MaskWords},
    {"proc/sys/kernel/domainname", "host names", MaskWords},
    {"etc/hostname", "host names", MaskWords},
    {"etc/machine-id", kIds, MaskHex},
    {"lib/modules/*/modules.alias", "aliases of other modules", KeepVfioAliases},
    {"usr/lib/modules/*/modules.alias", "aliases of other modules", KeepVfioAliases},
    {"var/lib/vfio-agent/devices/*.json", "boot ids", MaskRecord},
    {"etc/vfio-agent/config.yaml", kIds, MaskIds},
    {"usr/share/misc/pci.ids", kIds, MaskIds},
    {"sys/*", kIds, MaskIds},
    {"proc/*", kIds, MaskIds},
    {"dev/*", kIds, MaskIds},
    {"lib/modules/*", kIds, MaskIds},
    {"usr/lib/modules/*", kIds, MaskIds},
    {"*/modprobe.d/*", "rules of modprobe.d but for those that keep a module off", KeepModuleRules},
    {"*.service", kKubelet, KeepKubeletFlags},
    {"*.service.d/*", kKubelet, KeepKubeletFlags},
    {"*.env", kKubelet, KeepKubeletFlags},
    {"etc/default/*", kKubelet, KeepKubeletFlags},
    {"etc/sysconfig/*", kKubelet, KeepKubeletFlags},
    {"*_manager_state", kKubelet, KeepPolicy},
    {"*/kubelet_internal_checkpoint", kKubelet, EmptyObject},
    // The kubelet's configuration may be anywhere.
    {"*", kKubelet, KeepKubeletKeys},
});

}  // namespace

std::span<const Mask> Masks() { return kMasks; }

const Mask& MaskFor(const std::string& path) {
  return *std::ranges::find_if(
      kMasks, [&path](const Mask& mask) { return ::fnmatch(mask.pattern, path.c_str(), 0) == 0; });
}

}  // namespace vfio_agent
