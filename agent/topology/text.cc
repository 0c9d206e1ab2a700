#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/text/table.h"
#include "agent/topology/render.h"
#include "agent/usage/help_text.h"
#include "iommu/plan/unsafe.h"

namespace vfio_agent {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr size_t kProse = 100;  // sentences are no wider, however wide the terminal is
constexpr size_t kGap = 2;      // between two columns of a table

std::string Numa(const std::optional<int>& node) {
  return node ? absl::StrFormat("%d", *node) : "-";
}

// Columns first..last of the matrix, for all devices.
std::string Block(const Topology& topology, size_t first, size_t last) {
  Rows rows = {{"", "NUMA"}};
  for (size_t j = first; j < last; ++j) rows.front().push_back(topology.devices[j].name);
  for (size_t i = 0; i < topology.devices.size(); ++i) {
    rows.push_back({topology.devices[i].name, Numa(topology.devices[i].numa_node)});
    for (size_t j = first; j < last; ++j) {
      rows.back().emplace_back(Name(topology.distances[i][j]));
    }
  }
  return FormatTable(std::move(rows));
}

// A sentence behind `mark`; further lines begin below its text. Width 0: any.
std::string Sentence(std::string_view mark, std::string_view text, size_t width) {
  const size_t most = width == 0 ? kProse : std::min(width, kProse);
  const std::vector<std::string> lines = Wrap(text, most > mark.size() ? most - mark.size() : 1);
  return std::string(mark) + absl::StrJoin(lines, "\n" + std::string(mark.size(), ' ')) + "\n";
}

// How many columns fit beside the name and the NUMA node, each as wide as the longest name.
size_t ColumnsThatFit(const Topology& topology, size_t width) {
  size_t name = 4;
  for (const TopologyDevice& device : topology.devices) name = std::max(name, device.name.size());
  // The last column has no gap behind it.
  const size_t needed = (name + kGap) + 4;
  return std::max<size_t>(1, width > needed ? (width - needed) / (name + kGap) : 0);
}

std::string MatrixText(const Topology& topology, size_t width) {
  const size_t size = topology.devices.size();
  const size_t step = width == 0 ? size : ColumnsThatFit(topology, width);
  std::string text;
  for (size_t first = 0; first < size; first += step) {
    text += Block(topology, first, std::min(size, first + step)) + "\n";
  }
  return text;
}

bool HasUnknown(const Topology& topology) {
  return std::ranges::any_of(topology.distances, [](const std::vector<Distance>& row) {
    return std::ranges::count(row, Distance::kUnknown) > 0;
  });
}

std::string Legend(const Topology& topology, size_t width) {
  std::string text =
      Sentence("PIX  ", "at most one PCIe switch or bridge between the two", width) +
      Sentence("PXB  ", "several, and no host bridge", width) +
      Sentence("PHB  ", "a host bridge of a processor (NCCL calls PHB also what is NODE here)",
               width) +
      Sentence("NODE ", "two host bridges of one NUMA node", width) +
      Sentence("SYS  ", "the interconnect between NUMA nodes", width);
  if (HasUnknown(topology)) {
    text += Sentence("?    ",
                     "not told: two host bridges, and the kernel has no NUMA node for one of them "
                     "(NODE or SYS)",
                     width);
  }
  return text + "\n";
}

std::string VerdictOf(const TopologyDevice& device) {
  if (device.host && device.verdict != Verdict::kRefused) return "host";
  return VerdictCell(device.verdict, device.unsafe);
}

std::string DevicesText(const Topology& topology, size_t width) {
  Rows rows = {{"NAME", "ADDRESS", "ID", "NUMA", "GROUP", "VERDICT", "DRIVER", "DEVICE"}};
  for (const TopologyDevice& device : topology.devices) {
    rows.push_back({device.name, device.address.ToString(), device.id, Numa(device.numa_node),
                    Numa(device.group), VerdictOf(device),
                    device.driver.empty() ? "-" : device.driver, device.model});
  }
  return FormatTable(std::move(rows), {.width = width, .spare = {"ID", "DRIVER", "NUMA"}}) + "\n";
}

std::string PairsText(const Topology& topology, size_t width) {
  const bool any_nic =
      std::ranges::count(topology.devices, DeviceKind::kNic, &TopologyDevice::kind) > 0;
  if (!any_nic) return "";
  Rows rows = {{"GPU", "NIC", "GRADE", "BELOW"}};
  std::vector<std::string> alone;
  for (size_t i = 0; i < topology.devices.size(); ++i) {
    const TopologyDevice& gpu = topology.devices[i];
    if (gpu.kind != DeviceKind::kGpu) continue;
    bool any = false;
    for (const RailPair& pair : topology.pairs) {
      if (pair.gpu != i) continue;
      any = true;
      const TopologyDevice& nic = topology.devices[pair.nic];
      rows.push_back({absl::StrFormat("%s %s", gpu.name, gpu.address.ToString()),
                      absl::StrFormat("%s %s", nic.name, nic.address.ToString()),
                      std::string(Name(pair.distance)), pair.below.ToString()});
    }
    if (!any) alone.push_back(gpu.name);
  }
  std::string text;
  if (rows.size() > 1) {
    text = "GPUs and NICs below one PCIe switch (rails)\n" + FormatTable(std::move(rows));
  }
  if (!alone.empty()) {
    text += Sentence("", "no NIC below the switch or root port of " + absl::StrJoin(alone, ", "),
                     width);
  }
  return text.empty() ? text : text + "\n";
}

std::string BoardsText(const Topology& topology, size_t width) {
  std::string text;
  for (const NvlinkBoard& board : topology.boards) {
    text += Sentence("",
                     absl::StrFormat("NVLink board %s: %d GPUs, %d NVSwitches on PCI", board.family,
                                     board.gpus.size(), board.switches.size()),
                     width);
    for (const std::string& line : WhatItMeans(board)) text += Sentence("  - ", line, width);
  }
  return text;
}

}  // namespace

std::string TopologyText(const Topology& topology, size_t width) {
  if (topology.devices.empty()) {
    return "This node has no GPU, NVSwitch, network adapter or NVMe drive on PCI.\n";
  }
  std::string text = MatrixText(topology, width) + Legend(topology, width) +
                     DevicesText(topology, width) + PairsText(topology, width) +
                     BoardsText(topology, width);
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

}  // namespace vfio_agent
