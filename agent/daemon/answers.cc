#include "agent/daemon/answers.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "agent/files.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

using nlohmann::json;

constexpr char kSchema[] = "vfio-agent/answers/v1";
constexpr size_t kLargest = size_t{16} << 20;  // some ten thousand units; a node has hundreds

bool ReadText(const json& object, const char* key, std::string& text) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return false;
  text = found->get<std::string>();
  return true;
}

bool ReadTexts(const json& object, const char* key, std::vector<std::string>& texts) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return false;
  for (const json& item : *found) {
    if (!item.is_string()) return false;
    texts.push_back(item.get<std::string>());
  }
  return true;
}

bool ReadAnswer(const json& object, std::string& unit, Answer& answer) {
  if (!object.is_object()) return false;
  const auto group = object.find("group");
  if (group == object.end() || !group->is_number_integer()) return false;
  answer.group = group->get<int>();
  return ReadText(object, "unit", unit) && ReadText(object, "resource", answer.resource) &&
         ReadTexts(object, "addresses", answer.addresses) &&
         ReadTexts(object, "nodes", answer.nodes);
}

}  // namespace

std::string AnswersToText(const Answers& answers) {
  json list = json::array();
  for (const auto& [unit, answer] : answers) {
    list.push_back({{"unit", unit},
                    {"resource", answer.resource},
                    {"group", answer.group},
                    {"addresses", answer.addresses},
                    {"nodes", answer.nodes}});
  }
  const json document = {{"schema", kSchema}, {"answers", std::move(list)}};
  return document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

absl::StatusOr<Answers> ParseAnswers(const std::string& text) {
  const json document = json::parse(text, nullptr, false);
  std::string schema;
  if (!document.is_object() || !ReadText(document, "schema", schema)) {
    return absl::DataLossError("no JSON object with a schema");
  }
  if (schema != kSchema) return absl::DataLossError(absl::StrFormat("schema '%s'", schema));
  const auto list = document.find("answers");
  if (list == document.end() || !list->is_array()) return absl::DataLossError("answers: no list");
  Answers answers;
  for (const json& item : *list) {
    std::string unit;
    Answer answer;
    if (!ReadAnswer(item, unit, answer)) return absl::DataLossError("answers: no answer");
    answers[unit] = std::move(answer);
  }
  return answers;
}

absl::StatusOr<Answers> AnswersFile::Look() const {
  const absl::StatusOr<std::string> text = ReadSmallFile(path_, kLargest);
  if (absl::IsNotFound(text.status())) return Answers();
  if (!text.ok()) return text.status();
  return ParseAnswers(*text);
}

absl::StatusOr<Answers> AnswersFile::Read() const {
  absl::StatusOr<Answers> answers = Look();
  if (!absl::IsDataLoss(answers.status())) return answers;
  const std::string aside = path_ + ".aside";
  if (std::rename(path_.c_str(), aside.c_str()) != 0) {
    return ErrnoStatus(absl::StrFormat("%s cannot be understood (%s), nor renamed", path_,
                                       Message(answers.status())));
  }
  return absl::DataLossError(absl::StrFormat("%s cannot be understood (%s) and is now %s", path_,
                                             Message(answers.status()), aside));
}

absl::Status AnswersFile::Write(const Answers& answers) const {
  RETURN_IF_ERROR(MakeDirectories(dir_));
  return ReplaceFile(path_, AnswersToText(answers));
}

}  // namespace vfio_agent
