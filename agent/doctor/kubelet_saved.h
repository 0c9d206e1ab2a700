// What a node keeps of its kubelet in files: unit, flags, configuration.
#pragma once

#include "agent/doctor/facts.h"

namespace vfio_agent {

// The flags that the unit, its drop-ins and kubeadm's and the distributions' environment files
// name, for a kubelet that does not run. Variables are not followed: each flag counts wherever it
// stands.
KubeletFlags ReadSavedFlags(const Tree& files);

// The same of k3s and RKE2: what their units, the files of their environment and their
// configuration hand to the kubelet.
KubeletFlags ReadRancherFlags(const Tree& files);
// Whether a unit of theirs is installed.
bool HasRancherUnit(const Tree& files);

// Fills unit_* of `facts`.
void ReadUnit(const Tree& files, KubeletFacts& facts);

// Fills config_file, config_error, config_missing and config: the file that `flags` name or else
// the first of the usual ones, then those of --config-dir on top of it.
void ReadConfigFiles(const Tree& files, const KubeletFlags& flags, KubeletFacts& facts);

}  // namespace vfio_agent
