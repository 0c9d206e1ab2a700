#include "absl/strings/str_format.h"
#include "agent/topology/render.h"

namespace vfio_agent {
namespace {

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

std::string_view WordOf(Distance distance) {
  if (distance == Distance::kSelf) return "self";
  return distance == Distance::kUnknown ? "unknown" : Name(distance);
}

Json DeviceOf(const TopologyDevice& device) {
  Json json = {{"name", device.name},
               {"kind", std::string(Name(device.kind))},
               {"address", device.address.ToString()},
               {"id", device.id},
               {"model", TextOrNull(device.model)},
               {"driver", TextOrNull(device.driver)},
               {"numa_node", OrNull(device.numa_node)},
               {"group", OrNull(device.group)},
               {"verdict", std::string(Name(device.verdict))},
               {"resource", TextOrNull(device.resource)},
               {"nvlink_module", device.module}};
  if (device.unsafe) json["unsafe"] = true;
  if (device.host) json["host"] = true;
  return json;
}

}  // namespace

Json TopologyToJson(const Topology& topology) {
  Json devices = Json::array(), distances = Json::object(), pairs = Json::array(),
       boards = Json::array(), numa = Json::array();
  for (size_t i = 0; i < topology.devices.size(); ++i) {
    devices.push_back(DeviceOf(topology.devices[i]));
    Json row = Json::object();
    for (size_t j = 0; j < topology.devices.size(); ++j) {
      row[topology.devices[j].address.ToString()] = std::string(WordOf(topology.distances[i][j]));
    }
    distances[topology.devices[i].address.ToString()] = std::move(row);
  }
  for (const RailPair& pair : topology.pairs) {
    pairs.push_back({{"gpu", topology.devices[pair.gpu].address.ToString()},
                     {"nic", topology.devices[pair.nic].address.ToString()},
                     {"grade", std::string(WordOf(pair.distance))},
                     {"below", pair.below.ToString()}});
  }
  for (const NvlinkBoard& board : topology.boards) {
    boards.push_back({{"family", board.family},
                      {"gpus", AddressesToJson(board.gpus)},
                      {"nvswitches", AddressesToJson(board.switches)},
                      {"meaning", WhatItMeans(board)}});
  }
  for (const NumaNode& node : topology.numa) {
    numa.push_back({{"node", node.number}, {"cpus", TextOrNull(node.cpus)}});
  }
  return {{"schema", "vfio-agent/topology/v1"},
          {"numa_nodes", numa},
          {"devices", devices},
          {"distances", distances},
          {"pairs", pairs},
          {"nvlink_boards", boards}};
}

}  // namespace vfio_agent
