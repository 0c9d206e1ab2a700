#include "agent/config/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/usage/suggest.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

class Converter {
 public:
  Converter(std::string file, const YamlLimits& limits) : file_(std::move(file)), limits_(limits) {}

  absl::StatusOr<YamlValue> Convert(const YAML::Node& node, const std::string& path, int depth) {
    YamlValue value{.where = Where(node.Mark(), path)};
    places_ += value.where.size();
    if (depth > limits_.deepest || ++values_ > limits_.most_values ||
        places_ > limits_.most_places) {
      return YamlError(value, "nested too deep, or too many values");
    }
    switch (node.Type()) {
      case YAML::NodeType::Scalar:
        value.kind = YamlValue::Kind::kScalar;
        value.scalar = node.Scalar();
        return value;
      case YAML::NodeType::Sequence:
        return ConvertList(node, path, depth, std::move(value));
      case YAML::NodeType::Map:
        return ConvertMap(node, path, depth, std::move(value));
      default:
        return value;
    }
  }

 private:
  std::string Where(const YAML::Mark& mark, const std::string& path) const {
    const std::string place =
        mark.is_null() ? file_ : absl::StrFormat("%s:%d:%d", file_, mark.line + 1, mark.column + 1);
    return path.empty() ? place : place + ": " + path;
  }

  absl::StatusOr<YamlValue> ConvertList(const YAML::Node& node, const std::string& path, int depth,
                                        YamlValue value) {
    value.kind = YamlValue::Kind::kList;
    for (size_t i = 0; i < node.size(); ++i) {
      ASSIGN_OR_RETURN(YamlValue item,
                       Convert(node[i], absl::StrFormat("%s[%d]", path, i), depth + 1));
      value.list.push_back(std::move(item));
    }
    return value;
  }

  absl::StatusOr<YamlValue> ConvertMap(const YAML::Node& node, const std::string& path, int depth,
                                       YamlValue value) {
    value.kind = YamlValue::Kind::kMap;
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      const std::string below = path.empty() ? key : path + "." + key;
      const YamlValue place{.where = Where(entry.first.Mark(), below)};
      if (!entry.first.IsScalar()) return YamlError(place, "a key must be plain text");
      if (!seen.insert(key).second) return YamlError(place, "the key occurs twice");
      ASSIGN_OR_RETURN(YamlValue item, Convert(entry.second, below, depth + 1));
      item.key_where = place.where;
      if (item.kind == YamlValue::Kind::kNull) item.where = place.where;
      value.map.push_back({.key = key, .value = std::move(item)});
    }
    return value;
  }

  std::string file_;
  YamlLimits limits_;
  size_t values_ = 0;
  size_t places_ = 0;
};

// An ear for nothing but where documents begin.
class Ignore : public YAML::EventHandler {
 public:
  YAML::Mark begin;    // of the last one
  bool empty = false;  // it

  void OnDocumentStart(const YAML::Mark& mark) override {
    begin = mark;
    empty = true;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override { empty = false; }
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {
    empty = false;
  }
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    empty = false;
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    empty = false;
  }
  void OnMapEnd() override {}
};

// yaml-cpp takes a bracket that closes nothing for the start of a document, for ever, and its
// LoadAll() keeps each of them. Where the first document beyond `most` begins; nullopt where there
// are no more, but perhaps an empty one: a "---" at the end.
std::optional<YAML::Mark> DocumentBeyond(int most, const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  Ignore ignore;
  for (int i = 0; i <= most; ++i) {
    if (!parser.HandleNextDocument(ignore)) return std::nullopt;
  }
  const YAML::Mark begin = ignore.begin;
  if (ignore.empty && !parser.HandleNextDocument(ignore)) return std::nullopt;
  return begin;
}

absl::Status ErrorAt(const YAML::Mark& mark, const std::string& file_name,
                     const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s:%d:%d: %s", file_name, mark.line + 1, mark.column + 1, what));
}

}  // namespace

absl::StatusOr<YamlValue> ParseYaml(const std::string& text, const std::string& file_name) {
  try {
    if (const std::optional<YAML::Mark> second = DocumentBeyond(1, text)) {
      return ErrorAt(*second, file_name,
                     "a second document, or text that is part of none: want one document");
    }
    return Converter(file_name, {}).Convert(YAML::Load(text), "", 0);
  } catch (const YAML::Exception& error) {
    return ErrorAt(error.mark, file_name, error.msg);
  }
}

absl::StatusOr<std::vector<YamlValue>> ParseYamlDocuments(const std::string& text,
                                                          const std::string& file_name,
                                                          const YamlLimits& limits) {
  try {
    if (DocumentBeyond(limits.most_documents, text)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: more than %d documents, or a bracket that closes nothing", file_name,
                          limits.most_documents));
    }
    Converter converter(file_name, limits);
    std::vector<YamlValue> documents;
    for (const YAML::Node& node : YAML::LoadAll(text)) {
      ASSIGN_OR_RETURN(YamlValue document, converter.Convert(node, "", 0));
      documents.push_back(std::move(document));
    }
    return documents;
  } catch (const YAML::Exception& error) {
    return ErrorAt(error.mark, file_name, error.msg);
  }
}

absl::Status YamlError(const YamlValue& value, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrFormat("%s: %s", value.where, what));
}

absl::Status WordError(const YamlValue& value, std::string_view text,
                       const std::vector<std::string>& known, std::string_view more) {
  std::vector<std::string> wanted = known;
  if (!more.empty()) wanted.emplace_back(more);
  return YamlError(
      value, absl::StrFormat("'%s': want %s%s", text, EitherOf(wanted), DidYouMean(text, known)));
}

absl::Status ReadMap(const YamlValue& value, const std::vector<YamlKey>& keys) {
  if (value.kind == YamlValue::Kind::kNull) return absl::OkStatus();
  if (value.kind != YamlValue::Kind::kMap) return YamlError(value, "want keys and values");
  for (const auto& [name, item] : value.map) {
    const auto key = std::ranges::find(keys, std::string_view(name), &YamlKey::name);
    if (key == keys.end()) {
      std::vector<std::string> known;
      for (const YamlKey& k : keys) known.emplace_back(k.name);
      return absl::InvalidArgumentError(absl::StrFormat("%s: unknown key (known here: %s)%s",
                                                        item.key_where, absl::StrJoin(known, ", "),
                                                        DidYouMean(name, known)));
    }
    RETURN_IF_ERROR(key->read(item));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadScalar(const YamlValue& value) {
  if (value.kind != YamlValue::Kind::kScalar) return YamlError(value, "want one plain value");
  return value.scalar;
}

absl::Status ReadList(const YamlValue& value,
                      const std::function<absl::Status(const YamlValue&)>& read) {
  if (value.kind == YamlValue::Kind::kNull) return absl::OkStatus();
  if (value.kind != YamlValue::Kind::kList) return YamlError(value, "want a list");
  for (const YamlValue& item : value.list) RETURN_IF_ERROR(read(item));
  return absl::OkStatus();
}

}  // namespace vfio_agent
