// ClaimFiles: what a container gets of a claim, and what a virt-launcher reads of it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/dra/claim.h"
#include "agent/dra/device.h"

namespace vfio_agent {

// One device of a claim with all that its files tell.
struct RealDevice {
  const PreparedDevice* prepared = nullptr;
  const OfferedUnit* unit = nullptr;
  const DraDevice* device = nullptr;
};

// Where the files of claims are.
struct ClaimPlaces {
  std::string driver;
  std::string cdi_dir;       // "/var/run/cdi"
  std::string metadata_dir;  // "<kubelet's root>/plugins/<driver>/dra-device-metadata"
};

// "vfio-agent/claim=<uid>-0000-3b-00-0": unique for each claim, since runtimes remember.
std::string ClaimCdiId(const std::string& driver, const std::string& uid,
                       const std::string& device);
// "/var/run/cdi/dra-claim_vfio-agent_<uid>.json": no name that specs of resources have.
std::string ClaimCdiFile(const ClaimPlaces& places, const std::string& uid);

// The CDI spec of a claim: for each device its nodes, and with the first one of each request the
// request's metadata file, read-only, where KEP-5304 has it.
std::string ClaimCdiText(const ClaimPlaces& places, const PreparedClaim& claim,
                         const std::vector<RealDevice>& devices);

// The metadata file of a request (KEP-5304, metadata.resource.k8s.io/v1alpha1).
std::string MetadataText(const ClaimPlaces& places, const PreparedClaim& claim,
                         const std::string& request, const std::vector<RealDevice>& devices);

// Writes all of them, each in one step. After an error some may be there, of this call or before.
absl::Status WriteClaimFiles(const ClaimPlaces& places, const PreparedClaim& claim,
                             const std::vector<RealDevice>& devices);
// True where all that was written for the claim is there.
bool HasClaimFiles(const ClaimPlaces& places, const PreparedClaim& claim);
// OK where there are none. The CDI spec goes first: it leads to the others.
absl::Status RemoveClaimFiles(const ClaimPlaces& places, const std::string& uid);

}  // namespace vfio_agent
