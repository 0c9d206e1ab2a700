#include "test/apiserver/commands.h"

#include <istream>
#include <map>
#include <ostream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "sysfs/status.h"
#include "test/apiserver/fake_api_server.h"

namespace vfio_agent {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;
using Answer = absl::StatusOr<Json>;

constexpr double kPatience = 10;

struct Stand {
  FakeApiServer server;
  std::string dir;
};

using Command = Answer (*)(Stand& stand, const Words& words);

Words WordsOf(const std::string& line) {
  std::istringstream in(line);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// What stands behind the first `count` words: JSON has blanks in it.
absl::StatusOr<Json> JsonBehind(const std::string& line, int count) {
  std::istringstream in(line);
  std::string word;
  for (int i = 0; i < count; ++i) in >> word;
  std::string rest;
  std::getline(in, rest);
  Json json = Json::parse(rest, nullptr, false);
  if (json.is_object()) return json;
  return absl::InvalidArgumentError("no JSON object: " + rest);
}

Answer Done() { return Json::object(); }

std::string NodePath(const std::string& name) { return "/api/v1/nodes/" + name; }

Answer AddNode(Stand& stand, const Words& words) {
  std::map<std::string, std::string> labels;
  for (size_t i = 2; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    labels[words[i].substr(0, equals)] = words[i].substr(equals + 1);
  }
  stand.server.AddNode(words[1], labels);
  return Done();
}

Answer Label(Stand& stand, const Words& words) {
  const size_t equals = words[2].find('=');
  Json labels;
  if (equals != std::string::npos) {
    labels[words[2].substr(0, equals)] = words[2].substr(equals + 1);
  } else {
    labels[words[2].substr(0, words[2].size() - 1)] = nullptr;  // "KEY-"
  }
  stand.server.Merge(NodePath(words[1]), {{"metadata", {{"labels", labels}}}});
  return Done();
}

Answer Get(Stand& stand, const Words& words) {
  return Json{{"object", stand.server.Get(words[1])}};
}

Answer List(Stand& stand, const Words& words) {
  return Json{{"items", stand.server.List(words[1])}};
}

Answer Delete(Stand& stand, const Words& words) {
  stand.server.Delete(words[1]);
  return Done();
}

Answer Wait(Stand& stand, const Words& words) {
  double seconds = kPatience;
  if (words.size() > 4 && !absl::SimpleAtod(words[4], &seconds)) {
    return absl::InvalidArgumentError("not a number of seconds: " + words[4]);
  }
  const std::string wanted = words[3] == "-" ? "" : words[3];
  std::string last;
  const bool reached = stand.server.WaitFor(
      [&] {
        const Json object = stand.server.Get(words[1]);
        last = object.is_object() ? object.value(Json::json_pointer(words[2]), std::string()) : "";
        return last == wanted;
      },
      absl::Seconds(seconds));
  if (reached) return Done();
  return absl::DeadlineExceededError(
      absl::StrFormat("%s of %s is \"%s\", not \"%s\"", words[2], words[1], last, wanted));
}

Answer Count(Stand& stand, const Words& words) {
  return Json{{"count", stand.server.Count(words[1], words[2])}};
}

Answer Deny(Stand& stand, const Words& words) {
  stand.server.Deny(words[1] + " " + words[2]);
  return Done();
}

Answer Allow(Stand& stand, const Words& words) {
  stand.server.Allow(words[1] + " " + words[2]);
  return Done();
}

Answer Rotate(Stand& stand, const Words& words) {
  if (words[1] == "token") {
    stand.server.RotateToken();
  } else if (words[1] == "ca") {
    stand.server.RotateCa();
  } else {
    return absl::InvalidArgumentError("neither token nor ca: " + words[1]);
  }
  stand.server.WriteServiceAccount(stand.dir);
  return Done();
}

// Those without arguments.
Answer Switch(Stand& stand, const Words& words) {
  static const std::map<std::string, void (FakeApiServer::*)()> kSwitches = {
      {"clear", &FakeApiServer::ClearFaults},
      {"down", &FakeApiServer::Down},
      {"up", &FakeApiServer::Up},
      {"cut", &FakeApiServer::CutConnections},
      {"end-watches", &FakeApiServer::EndWatches},
      {"compact", &FakeApiServer::Compact},
      {"bookmarks", &FakeApiServer::SendBookmarks}};
  const auto found = kSwitches.find(words.front());
  if (found == kSwitches.end()) {
    return absl::InvalidArgumentError(absl::StrFormat("no such command: '%s'", words.front()));
  }
  (stand.server.*found->second)();
  return Done();
}

Answer Fault(Stand& stand, const std::string& line) {
  ASSIGN_OR_RETURN(const Json json, JsonBehind(line, 1));
  ApiFault fault{.method = json.value("method", ""),
                 .path = json.value("path", ""),
                 .query = json.value("query", ""),
                 .times = json.value("times", 1),
                 .code = json.value("code", 0),
                 .retry_after = json.value("retry_after", 0),
                 .delay = absl::Milliseconds(json.value("delay_ms", 0)),
                 .hang = json.value("hang", false)};
  if (json.contains("watch")) fault.watch = json["watch"].get<bool>();
  if (json.contains("cut")) fault.cut = json["cut"].get<size_t>();
  stand.server.Add(fault);
  return Done();
}

Answer Change(Stand& stand, const Words& words, const std::string& line) {
  ASSIGN_OR_RETURN(const Json json, JsonBehind(line, 2));
  if (words.front() == "merge") {
    stand.server.Merge(words[1], json);
    return Done();
  }
  stand.server.Delete(words[1]);
  stand.server.Create(words[1], json);
  return Done();
}

Answer Run(Stand& stand, const std::string& line) {
  struct Row {
    Command command;
    size_t words;  // that it needs, its own included
  };
  static const std::map<std::string, Row> kCommands = {
      {"node", {AddNode, 2}},  {"label", {Label, 3}},  {"get", {Get, 2}},     {"list", {List, 2}},
      {"delete", {Delete, 2}}, {"wait", {Wait, 4}},    {"count", {Count, 3}}, {"deny", {Deny, 3}},
      {"allow", {Allow, 3}},   {"rotate", {Rotate, 2}}};
  const Words words = WordsOf(line);
  if (words.front() == "fault") return Fault(stand, line);
  if (words.size() > 1 && (words.front() == "put" || words.front() == "merge")) {
    return Change(stand, words, line);
  }
  const auto found = kCommands.find(words.front());
  if (found == kCommands.end()) return Switch(stand, words);
  if (words.size() >= found->second.words) return found->second.command(stand, words);
  return absl::InvalidArgumentError(
      absl::StrFormat("%s needs %d arguments at least", words.front(), found->second.words - 1));
}

// A path or a JSON value that cannot be is an answer, not the end.
Answer RunSafely(Stand& stand, const std::string& line) {
  try {
    return Run(stand, line);
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

}  // namespace

int RunApiCommands(const std::string& host, const std::string& dir, std::istream& in,
                   std::ostream& out) {
  Stand stand{FakeApiServer(host), dir};
  stand.server.WriteServiceAccount(dir);
  out << Json{{"ready", true}, {"server", stand.server.url()}}.dump() << std::endl;
  bool failed = false;
  for (std::string line; std::getline(in, line);) {
    if (line.find_first_not_of(" \t") == std::string::npos || line.starts_with('#')) continue;
    if (line == "quit") break;
    const Answer answer = RunSafely(stand, line);
    failed = failed || !answer.ok();
    Json said = {{"ok", answer.ok()}};
    if (answer.ok()) {
      said.update(*answer);
    } else {
      said["error"] = Message(answer.status());
    }
    out << said.dump() << std::endl;
  }
  return failed ? 1 : 0;
}

}  // namespace vfio_agent
