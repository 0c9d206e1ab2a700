// Small readers over yaml-cpp for the simulator's two kinds of files.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace vfio_agent::sim {

// yaml-cpp reports errors by throwing, so these do as well; ParseMachine and ParseScenario turn
// all of it into a Status at their outside.
struct YamlError : std::runtime_error {
  YamlError(const YAML::Node& node, const std::string& what)
      : std::runtime_error("line " + std::to_string(node.Mark().line + 1) + ": " + what) {}
};

inline bool Given(const YAML::Node& node) { return node.IsDefined() && !node.IsNull(); }

inline std::string Text(const YAML::Node& node, const std::string& otherwise = "") {
  return Given(node) ? node.as<std::string>() : otherwise;
}

// Hexadecimal with or without "0x", as sysfs and lspci write ids.
inline uint32_t Hex(const YAML::Node& node, uint32_t otherwise = 0) {
  if (!Given(node)) return otherwise;
  size_t used = 0;
  const std::string text = node.as<std::string>();
  const unsigned long value = std::stoul(text, &used, 16);
  if (used != text.size() || value > UINT32_MAX) throw YamlError(node, "not hexadecimal: " + text);
  return static_cast<uint32_t>(value);
}

inline std::vector<std::string> Texts(const YAML::Node& node) {
  return Given(node) ? node.as<std::vector<std::string>>() : std::vector<std::string>{};
}

inline std::map<std::string, std::string> TextMap(const YAML::Node& node) {
  std::map<std::string, std::string> map;
  if (!Given(node)) return map;
  for (const auto& item : node) map[item.first.as<std::string>()] = Text(item.second);
  return map;
}

// `known`: names with one space between them. A misspelt key must not silently test nothing.
inline void OnlyKeys(const YAML::Node& node, const std::string& known) {
  for (const auto& item : node) {
    const std::string key = item.first.as<std::string>();
    if ((" " + known + " ").find(" " + key + " ") == std::string::npos) {
      throw YamlError(item.first, "unknown key '" + key + "'");
    }
  }
}

}  // namespace vfio_agent::sim
