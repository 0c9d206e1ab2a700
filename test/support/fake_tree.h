// FakeTree: a node's /sys, /proc and /dev in a temporary directory, built from values.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "sysfs/node_facts.h"
#include "sysfs/tree.h"
#include "test/support/config_bytes.h"

namespace vfio_agent {

// One PCI function. The attributes that have no field here get usual values; overwrite them with
// FakeTree::Attribute().
struct FakeDevice {
  std::string address;
  std::string vendor = "0x10de";
  std::string device = "0x2330";
  std::string class_code = "0x030200";
  std::string driver;  // "": none bound
  int group = -1;      // -1: no IOMMU translates for it
  std::string parent;  // the bridge directly above, added before; "": on a root bus
  ConfigBytes config = EndpointConfig();
};

// Laid out as the kernel does it: real directories nested below sys/devices along the bridges,
// links from sys/bus/pci/devices, relative links "driver" and "iommu_group". Paths are relative to
// the root. The directory goes away with the object.
class FakeTree {
 public:
  FakeTree();
  ~FakeTree();
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;

  FakeTree& Add(const FakeDevice& device);
  // Writes a device's attribute, with the newline that the kernel puts behind it.
  FakeTree& Attribute(const std::string& address, const std::string& name,
                      const std::string& value);
  FakeTree& Driver(const std::string& name);  // sys/bus/pci/drivers/<name>
  FakeTree& Bind(const std::string& address, const std::string& driver);  // the link alone
  FakeTree& Node(const std::string& name);  // dev/vfio/<name>, a plain file here
  FakeTree& Write(const std::string& path, std::string_view text);  // and the directories above
  FakeTree& Link(const std::string& path, const std::string& target);
  FakeTree& Remove(const std::string& path);

  // "sys/bus/pci/devices/0000:3b:00.0/<name>"
  static std::string Of(const std::string& address, const std::string& name);
  std::string Read(const std::string& path) const;  // the bytes as they are
  bool Has(const std::string& path) const;          // a link that leads nowhere counts

  const std::filesystem::path& root() const { return root_; }
  Tree Open() const { return *Tree::Open(root_.string()); }
  // Everything that the agent would know about this node.
  NodeFacts Facts() const;

 private:
  void AddAttributes(const std::string& dir, const FakeDevice& device);
  void AddGroup(const std::string& dir, const FakeDevice& device);

  std::filesystem::path root_;
};

}  // namespace vfio_agent
