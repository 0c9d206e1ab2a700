// What a group's members have below vfio-dev: the nodes of kernels that reach a device without its
// group.
#pragma once

#include <string>
#include <vector>

namespace vfio_agent {

class Tree;

// Where the bus has a member of a group by this name: a PCI function, or a mediated device.
std::string MemberDir(const std::string& member);

// "vfio3": the cdev of the device whose directory is `dir`; empty for none. That it is in sysfs
// does not mean that it has a node.
std::string ReadCdev(const Tree& tree, const std::string& dir);

// The nodes of the group's members that are there, by their names below dev/vfio: "devices/vfio3".
std::vector<std::string> GroupCdevs(const Tree& tree, int group);

}  // namespace vfio_agent
