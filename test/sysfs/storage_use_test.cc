#include "sysfs/use/storage_use.h"

#include <catch2/catch.hpp>

#include "test/sysfs/use_tree.h"

namespace vfio_agent {
namespace {

// An NVMe disk with two partitions, as the kernel lays it out.
struct Disk : UseTree {
  Disk() {
    Part("nvme/nvme0/nvme0n1", "259:0").Part("nvme/nvme0/nvme0n1/nvme0n1p2", "259:2");
    Part("nvme/nvme0/nvme0n1/nvme0n1p3", "259:3");
    Below(kDisk, "nvme/nvme0/nvme0n1/nvme0n1p2/partition", "2");
    Below(kDisk, "nvme/nvme0/nvme0n1/nvme0n1p3/partition", "3");
  }
  Disk& Part(const std::string& path, const std::string& number) {
    Below(kDisk, path + "/dev", number).Below(kDisk, path + "/size", "1000");
    return *this;
  }
  Disk& Mounts(const std::string& lines) {
    Write("proc/1/mountinfo", lines);
    return *this;
  }
  // `name` stands on the block device in directory `below`.
  Disk& Stack(const std::string& below, const std::string& name, const std::string& number,
              const std::string& mapped) {
    const std::string dir = "sys/devices/virtual/block/" + name;
    Write(dir + "/dev", number + "\n");
    if (!mapped.empty()) Write(dir + "/dm/name", mapped + "\n");
    Link(below + "/holders/" + name, dir);
    return *this;
  }
  std::string Third() const { return Real(kDisk) + "/nvme/nvme0/nvme0n1/nvme0n1p3"; }
};

constexpr char kRootMount[] = "25 1 253:0 / / rw,relatime shared:1 - ext4 /dev/mapper/vg-root rw\n";

TEST_CASE("a disk on which nothing is mounted is no use", "[sysfs]") {
  CHECK(Disk().Mounts("25 1 8:1 / / rw - ext4 /dev/sda1 rw\n").Uses(kDisk).empty());
}

TEST_CASE("a mount is found by the device's number", "[sysfs]") {
  CHECK(
      Disk().Mounts("25 1 259:2 / /boot rw,relatime shared:1 - ext4 /dev/root rw\n").Uses(kDisk) ==
      "storage: carries nvme0n1p2, mounted on /boot");
}

TEST_CASE("a mount is found by its source where its number is made up", "[sysfs]") {
  CHECK(Disk().Mounts("25 1 0:30 /sub /srv rw - btrfs /dev/nvme0n1p3 rw\n").Uses(kDisk) ==
        "storage: carries nvme0n1p3, mounted on /srv");
}

TEST_CASE("the other devices of a mounted btrfs are a use", "[sysfs]") {
  Disk disk;
  disk.Write("sys/fs/btrfs/features/raid1c34", "");
  disk.Write("sys/fs/btrfs/9b1c/devices/nvme0n1p3/x", "");
  CHECK(disk.Uses(kDisk) == "storage: carries nvme0n1p3, a device of a mounted btrfs");
}

TEST_CASE("a raw volume that was given to a pod is a use", "[sysfs]") {
  CHECK(
      Disk().Mounts("25 1 0:5 /nvme0n1 /var/lib/kubelet/v1 rw - devtmpfs udev rw\n").Uses(kDisk) ==
      "storage: carries nvme0n1, mounted on /var/lib/kubelet/v1");
}

TEST_CASE("many mounts of one device are counted", "[sysfs]") {
  std::string lines;
  for (int i = 0; i < 5; ++i) lines += absl::StrFormat("2%d 1 259:2 / /m%d rw - ext4 x rw\n", i, i);
  CHECK(Disk().Mounts(lines).Uses(kDisk) ==
        "storage: carries nvme0n1p2, mounted on /m0, /m1, /m2 and 2 more");
}

TEST_CASE("swap is a use", "[sysfs]") {
  Disk disk;
  disk.Write("proc/swaps", "Filename Type Size Used Priority\n/dev/nvme0n1p3 partition 8 0 -2\n");
  CHECK(disk.Uses(kDisk) == "storage: carries nvme0n1p3, used as swap");
}

TEST_CASE("the root file system is found through the volumes on a partition", "[sysfs]") {
  Disk disk;
  disk.Mounts(kRootMount).Stack(disk.Third(), "dm-0", "253:0", "vg-root");
  CHECK(disk.Uses(kDisk) == "storage: carries nvme0n1p3 below dm-0 (vg-root), mounted on /");
}

TEST_CASE("a stack is followed through all its levels", "[sysfs]") {
  Disk disk;
  disk.Mounts(kRootMount).Stack(disk.Third(), "md0", "9:0", "");
  disk.Stack("sys/devices/virtual/block/md0", "dm-0", "253:0", "vg-root");
  disk.Stack("sys/devices/virtual/block/md0", "dm-1", "253:1", "vg-swap");
  disk.Write("proc/swaps", "Filename Type Size Used Priority\n/dev/dm-1 partition 8 0 -2\n");
  CHECK(disk.Uses(kDisk) ==
        "storage: carries nvme0n1p3 below md0 below dm-0 (vg-root), mounted on /\n"
        "storage: carries nvme0n1p3 below md0 below dm-1 (vg-swap), used as swap");
}

TEST_CASE("a stack of which nothing is mounted is still somebody's", "[sysfs]") {
  Disk disk;
  disk.Stack(disk.Third(), "dm-0", "253:0", "vg-data");
  CHECK(disk.Uses(kDisk) == "storage: carries nvme0n1p3 below dm-0 (vg-data)");
}

TEST_CASE("a stack that leads back to itself ends", "[sysfs]") {
  Disk disk;
  disk.Stack(disk.Third(), "dm-0", "253:0", "");
  disk.Stack("sys/devices/virtual/block/dm-0", "dm-0", "253:0", "");
  CHECK(disk.Uses(kDisk).starts_with("storage: carries nvme0n1p3 below dm-0 below dm-0"));
}

TEST_CASE("disks of SATA, SAS and virtio are found below their hosts", "[sysfs]") {
  const std::string dir = GENERATE(
      as<std::string>{}, "ata1/host0/target0:0:0/0:0:0:0/block/sda",
      "host0/port-0:0/expander-0:0/port-0:0:1/end_device-0:0:1/target0:0:1/0:0:1:0/block/sda",
      "virtio0/block/sda");
  CAPTURE(dir);
  UseTree tree;
  tree.Below(kDisk, dir + "/dev", "8:0").Below(kDisk, dir + "/sda1/dev", "8:1");
  tree.Below(kDisk, dir + "/sda1/size", "1000");
  tree.Write("proc/1/mountinfo", "25 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
  CHECK(tree.Uses(kDisk) == "storage: carries sda1, mounted on /");
}

TEST_CASE("a disk with several controllers is found in its subsystem", "[sysfs]") {
  UseTree tree;
  tree.Below(kDisk, "nvme/nvme1/nvme0c1n1/hidden", "1")
      .Below(kDisk, "nvme/nvme1/nvme0c1n1/size", "9");
  const std::string head = "sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1";
  tree.Write(head + "/dev", "259:0\n").Write(head + "/nvme0n1p1/dev", "259:1\n");
  tree.Link("sys/class/block/nvme0n1", head);
  CHECK(tree.Uses(kDisk).empty());
  tree.Write("proc/1/mountinfo", "25 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw\n");
  CHECK(tree.Uses(kDisk) == "storage: carries nvme0n1p1, mounted on /");
}

TEST_CASE("a disk whose subsystem cannot be seen is not taken for unused", "[sysfs]") {
  UseTree tree;
  tree.Below(kDisk, "nvme/nvme1/nvme0c1n1/hidden", "1")
      .Below(kDisk, "nvme/nvme1/nvme0c1n1/size", "9");
  CHECK(tree.Uses(kDisk).starts_with("process: has directories below it that could not be"));
}

TEST_CASE("a disk is a use where the host's mounts cannot be seen", "[sysfs]") {
  Disk disk;
  disk.Remove("proc/1/mountinfo");
  CHECK(disk.Uses(kDisk) ==
        "storage: carries nvme0n1, whether something on it is mounted cannot be seen without "
        "hostPID");
  CHECK(disk.Remedy(kDisk) == "run the agent with hostPID");
}

TEST_CASE("a list of swap that cannot be read is not an empty one", "[sysfs]") {
  Disk disk;
  disk.Remove("proc/swaps");  // a kernel without swap
  CHECK(disk.Uses(kDisk).empty());
  disk.Write("proc/swaps/x", "");
  CHECK_FALSE(disk.Uses(kDisk).empty());
}

TEST_CASE("a disk may belong to any ZFS pool that is imported", "[sysfs]") {
  Disk disk;
  disk.Write("proc/spl/kstat/zfs/arcstats", "");
  CHECK(disk.Uses(kDisk).empty());
  disk.Write("proc/spl/kstat/zfs/rpool/state", "ONLINE\n");
  CHECK(disk.Uses(kDisk) ==
        "storage: carries nvme0n1, which may belong to a ZFS pool (rpool): the kernel does not "
        "tell its disks");
}

TEST_CASE("mount points are read with the characters that the kernel masks", "[sysfs]") {
  const auto mounts = ParseMounts("1 2 8:1 / /a\\040b\\134 rw a:1 b:2 - ext4 /dev/sd\\011a rw\n");
  REQUIRE(mounts.size() == 1);
  CHECK(
      mounts[0] ==
      Mount{
          .number = "8:1", .root = "/", .point = "/a b\\", .type = "ext4", .source = "/dev/sd\ta"});
}

TEST_CASE("hostile mount tables give no mount", "[sysfs]") {
  const std::string text =
      GENERATE(as<std::string>{}, "", "1 2 8:1 / / rw", "1 2 8:1 / / rw - ext4",
               "1 2 8:1 / / rw ext4 x rw y", "- - - - - - - -", std::string(100'000, '-'),
               std::string(100'000, '\\'), std::string("\0 \xff\n\0", 5));
  CAPTURE(text);
  CHECK(ParseMounts(text).empty());
  CHECK(ParseSwaps(text).empty());
}

TEST_CASE("a swap file is on a file system that is mounted: only partitions count", "[sysfs]") {
  CHECK(
      ParseSwaps("Filename Type Size\n/swap\\040file file 8 0 -2\n/dev/dm-1 partition 8 0 -3\n") ==
      std::set<std::string>{"/dev/dm-1"});
}

}  // namespace
}  // namespace vfio_agent
