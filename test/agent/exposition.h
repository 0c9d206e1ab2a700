// A small reader of Prometheus' text format that takes nothing for granted.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace vfio_agent {

struct Exposed {
  std::map<std::string, double> samples;     // by name and labels as they stand in the text
  std::map<std::string, std::string> types;  // by family
  std::vector<std::string> faults;           // what the format does not allow
};

Exposed ReadExposition(const std::string& text);

}  // namespace vfio_agent
