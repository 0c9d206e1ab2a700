// PodResources: asks the kubelet which units the pods of this node have.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "iommu/tenancy/claims.h"

namespace vfio_agent {

// Where a node's kubelet is looked for. Full paths; two settings, since only the first one is the
// same on every node.
struct KubeletPlace {
  std::string device_plugin_dir;  // "/var/lib/kubelet/device-plugins"
  std::string root_dir;           // "/var/lib/kubelet"
};

// What the kubelet says, asked anew. A node has a kubelet when its device-plugin directory or the
// directory of its PodResources socket is there; it need not run. Waits for at most `limit`.
//
// Claims are those of ids that are PCI addresses: any other id is another plugin's. Where the
// answer cannot be had in full (an error, more than 16 MiB, more than 65,536 claims), nothing is
// known: what is missing in part of a list would be taken for free.
//
// Not for a child process that was forked from one that uses gRPC.
PodClaims ReadPodClaims(const KubeletPlace& place, absl::Duration limit);

}  // namespace vfio_agent
