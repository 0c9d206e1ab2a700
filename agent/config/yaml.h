// Strict reading of YAML: each error with file, line, column and the key's path. The only user
// of yaml-cpp, whose exceptions end here.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace vfio_agent {

struct YamlEntry;

// One value with its place. Maps keep the order of the file; duplicate keys are errors.
struct YamlValue {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  std::string scalar;
  std::vector<YamlValue> list;
  std::vector<YamlEntry> map;
  std::string where;      // "config.yaml:3:5: resources[0].select"
  std::string key_where;  // the same for its key, where it has one
};

// A struct, not a std::pair: a pair asks what its half-made second part can do.
struct YamlEntry {
  std::string key;
  YamlValue value;
};

// How much one text may stand for: aliases can make a small one stand for very much.
struct YamlLimits {
  int deepest = 16;
  size_t most_values = 100'000;
  size_t most_places = size_t{16} << 20;  // bytes of all YamlValue::where
  int most_documents = 1'000;
};

// One document. InvalidArgument: "config.yaml:3:5: …" for syntax, duplicate keys, a second document
// and anchors that go deeper than a configuration has reason to.
absl::StatusOr<YamlValue> ParseYaml(const std::string& text, const std::string& file_name);

// The same for a text of any number of documents, with "---" between them. JSON is one of them.
absl::StatusOr<std::vector<YamlValue>> ParseYamlDocuments(const std::string& text,
                                                          const std::string& file_name,
                                                          const YamlLimits& limits);

// One key of a map that may occur, and what to do with its value.
struct YamlKey {
  std::string_view name;
  std::function<absl::Status(const YamlValue&)> read;
};
// Hands each entry to its reader; an unknown key is an error that lists the known ones.
absl::Status ReadMap(const YamlValue& value, const std::vector<YamlKey>& keys);

absl::StatusOr<std::string> ReadScalar(const YamlValue& value);
absl::Status ReadList(const YamlValue& value,
                      const std::function<absl::Status(const YamlValue&)>& read);

// The error of a value that is none of `known`: "…: 'unti': want members or unit; did you mean
// 'unit'?". `more`: what else it may be, "a list".
absl::Status WordError(const YamlValue& value, std::string_view text,
                       const std::vector<std::string>& known, std::string_view more = "");

// The error "<where>: <what>".
absl::Status YamlError(const YamlValue& value, const std::string& what);

}  // namespace vfio_agent
