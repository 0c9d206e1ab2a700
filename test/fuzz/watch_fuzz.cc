// ParseWatchLine, ParseApiJson and ObjectWatch: whatever an API server sends, the next request is
// one that can be sent, not at once and not never.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "agent/cluster/node_document.h"
#include "agent/cluster/object_watch.h"
#include "sysfs/status.h"
#include "test/fuzz/require.h"

namespace vfio_agent {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);
constexpr absl::Duration kFirst = absl::Seconds(1);
constexpr absl::Duration kLongest = absl::Minutes(1);
constexpr absl::Duration kMostAsked = absl::Minutes(10);

bool IsPlain(const std::string& text) {
  return std::ranges::all_of(
      text, [](char c) { return absl::ascii_isprint(static_cast<unsigned char>(c)); });
}

bool CanBeSent(const std::string& version) {
  return std::ranges::all_of(version, [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
  });
}

void CheckNext(const ObjectWatch& watch, absl::Time now, std::string_view text) {
  Require(CanBeSent(watch.version()), "a version can be part of a request", text);
  Require(watch.due() >= now + kFirst / 2, "after a failure there is a pause", text);
  Require(watch.due() <= now + std::max(kLongest, kMostAsked), "and an end of it", text);
  Require(!watch.status().ok() && IsPlain(Message(watch.status())),
          "what went wrong is told on one plain line", text);
}

void CheckNode(const ApiJson& object, std::string_view text) {
  const ApiNode node = ReadNode(object);
  Require(node == ReadNode(object), "the same object gives the same Node", text);
  Require(node.conditions.size() <= 256, "not more conditions than there can be", text);
  for (const auto& [key, value] : node.OwnLabels()) {
    Require(key.starts_with(kOwnLabels) && node.labels.at(key) == value, "own labels are labels",
            text);
  }
}

void CheckLine(std::string_view text) {
  const absl::StatusOr<WatchLine> line = ParseWatchLine(text);
  const absl::StatusOr<WatchLine> same = ParseWatchLine(text);
  Require(line.ok() == same.ok() && (!line.ok() || line->object == same->object),
          "the same line says the same", text);
  if (!line.ok()) return RequireError(line.status(), absl::StatusCode::kDataLoss);
  const bool error = line->kind == WatchLine::Kind::kError;
  Require(error == line->version.empty(), "every object has a version", text);
  Require(line->code >= 0, "codes are none below zero", text);
  CheckNode(line->object, text);
}

// A stream, by lines, behind a list.
void CheckStream(std::string_view text) {
  ObjectWatch watch({.first = kFirst, .longest = kLongest, .seed = 1});
  watch.OnSent(kStart);
  watch.OnList({.code = 200, .body = R"({"metadata":{"resourceVersion":"1"},"items":[]})"}, kStart);
  watch.OnSent(kStart);
  watch.TakeNews();
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    const std::string_view line = text.substr(from, end - from);
    from = end + 1;
    const std::string before = watch.version();
    const bool goes_on = watch.OnLine(line, kStart);
    const std::vector<WatchNews> news = watch.TakeNews();
    Require(news.size() <= 1 && (goes_on || news.empty()), "a line tells one thing at most", line);
    if (goes_on) continue;
    Require(watch.version() == before, "what is wrong moves no version", line);
    return CheckNext(watch, kStart, line);
  }
  Require(watch.status().ok() && CanBeSent(watch.version()), "what goes on is well", text);
}

void CheckList(std::string_view text) {
  ObjectWatch watch({.first = kFirst, .longest = kLongest, .seed = 1});
  watch.OnList({.code = 200, .body = std::string(text)}, kStart);
  const std::vector<WatchNews> news = watch.TakeNews();
  if (!watch.status().ok()) {
    Require(news.empty(), "half a list tells nothing", text);
    return CheckNext(watch, kStart, text);
  }
  Require(watch.wants() == ObjectWatch::Wants::kWatch && !watch.version().empty(),
          "behind a list comes a watch", text);
  for (const ApiJson& object : news.at(0).objects) CheckNode(object, text);
}

void CheckJson(std::string_view text) {
  const absl::StatusOr<ApiJson> json = ParseApiJson(text);
  if (!json.ok()) return RequireError(json.status(), absl::StatusCode::kDataLoss);
  Require(ParseApiJson(DumpApiJson(*json)).ok(), "what was read can be written", text);
  const std::string cut = CutText(text, text.size() / 2);
  Require(cut.size() <= text.size() / 2 && text.starts_with(cut), "a cut text is its start", text);
  for (const int code : {200, 401, 403, 409, 410, 429, 500}) {
    const ApiAnswer answer = Judge({.code = code, .body = std::string(text)});
    Require(answer.status.ok() == (code == 200) && IsPlain(Message(answer.status)),
            "an answer is judged by its code, in plain words", text);
    Require(answer.retry_after <= kMostAsked, "nobody is kept waiting for ever", text);
  }
}

}  // namespace
}  // namespace vfio_agent

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = vfio_agent::Text(data, size);
  vfio_agent::CheckLine(text);
  vfio_agent::CheckStream(text);
  vfio_agent::CheckList(text);
  vfio_agent::CheckJson(text);
  return 0;
}
