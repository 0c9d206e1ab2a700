// What tests ask of a document of `doctor -o json`.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

namespace vfio_agent {

using Report = nlohmann::json;

inline const Report* Find(const Report& report, const std::string& check) {
  const auto& checks = report.at("checks");
  const auto found =
      std::ranges::find_if(checks, [&](const Report& entry) { return entry.at("check") == check; });
  return found == checks.end() ? nullptr : &*found;
}

inline std::string StateOf(const Report& report, const std::string& check) {
  const Report* const found = Find(report, check);
  return found == nullptr ? "there is no such check" : found->at("state").get<std::string>();
}

// "swap: kubelet registration", of the first cause; each check once.
inline std::string FirstCause(const Report& report) {
  if (report.at("root_causes").empty()) return "none";
  const Report& cause = report.at("root_causes").at(0);
  const auto name = [&](const Report& place) {
    return report.at("checks").at(place.get<size_t>()).at("check").get<std::string>();
  };
  std::string text = name(cause.at("check")) + ":";
  std::string last;
  for (const Report& place : cause.at("explains")) {
    if (name(place) != last) text += " " + name(place);
    last = name(place);
  }
  return text;
}

}  // namespace vfio_agent
