// NodeText: a node's /sys, /proc and /dev as one short text, which a fuzzer can change.
//
// One entry a line; '|' stands for a newline inside a value.
//
//   /dev/vfio/26                     a directory, with those above it
//   /proc/cmdline=quiet              a file with that text
//   /sys/class/iommu/dmar0>../x      a link with that target
//   @0000:3b:00.0                    a device on a root bus, with its link in sys/bus/pci/devices
//   @0000:3b:00.0^0000:3a:01.0       the same below a bridge that stands further up
//   vendor=0x10de                    a file, link or directory of the last device: as above
//   config#4096 06=10 34=40          a file of that many zero bytes, but for these hex bytes at
//                                    hex offsets; at most 4096
//
// An entry that cannot be made (a name that is taken, ".." or "." in a path) is left out.
#pragma once

#include <string>
#include <string_view>

namespace vfio_agent {

// Makes the node below the directory `root`. Nothing is ever made or changed outside of it: the
// links may lead anywhere, but none is followed.
void MakeNode(std::string_view text, const std::string& root);

// The bytes of "4096 06=10 34=40".
std::string SparseBytes(std::string_view text);

}  // namespace vfio_agent
