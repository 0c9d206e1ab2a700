#include <yaml-cpp/yaml.h>

#include "agent/text/json.h"

namespace vfio_agent {
namespace {

void Emit(YAML::Emitter& out, const Json& json) {
  if (json.is_object()) {
    out << YAML::BeginMap;
    for (const auto& entry : json.items()) {
      out << YAML::Key << entry.key() << YAML::Value;
      Emit(out, entry.value());
    }
    out << YAML::EndMap;
  } else if (json.is_array()) {
    out << (json.empty() ? YAML::Flow : YAML::Block) << YAML::BeginSeq;
    for (const Json& item : json) Emit(out, item);
    out << YAML::EndSeq;
  } else if (json.is_string()) {
    // Quoted: "0302" and "1e10" would be numbers to a reader otherwise.
    out << YAML::DoubleQuoted << json.get<std::string>();
  } else if (json.is_null()) {
    out << YAML::Null;
  } else {
    out << json.dump();
  }
}

}  // namespace

std::string DumpYaml(const Json& json) {
  YAML::Emitter out;
  Emit(out, json);
  return std::string(out.c_str()) + "\n";
}

}  // namespace vfio_agent
