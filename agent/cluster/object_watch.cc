#include "agent/cluster/object_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr size_t kVersionBytes = 128;
constexpr int kTooMany = 429;
// A server that always has another page would otherwise be asked for ever, or fill the memory.
constexpr int kMostPages = 256;
constexpr size_t kListBytes = size_t{16} << 20;
constexpr size_t kTokenBytes = 4096;

// It goes into the next request as it is. Only the server knows what it means.
bool IsVersion(std::string_view version) {
  return !version.empty() && version.size() <= kVersionBytes &&
         std::ranges::all_of(version, [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
         });
}

std::optional<WatchLine::Kind> KindOf(const std::string& type) {
  if (type == "ADDED" || type == "MODIFIED") return WatchLine::Kind::kSet;
  if (type == "DELETED") return WatchLine::Kind::kGone;
  if (type == "BOOKMARK") return WatchLine::Kind::kBookmark;
  if (type == "ERROR") return WatchLine::Kind::kError;
  return std::nullopt;
}

struct Listed {
  std::string version;
  std::vector<ApiJson> objects;
  std::string next;
};

// Whatever the server has called the place, it stays one value of a query.
std::string Escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    escaped += absl::ascii_isalnum(byte) ? std::string(1, c) : absl::StrFormat("%%%02X", int{byte});
  }
  return escaped;
}

absl::StatusOr<Listed> ParseList(std::string_view body) {
  ASSIGN_OR_RETURN(ApiJson json, ParseApiJson(body));
  Listed listed{.version = TextAt(json, {"metadata", "resourceVersion"}),
                .next = TextAt(json, {"metadata", "continue"})};
  if (!IsVersion(listed.version)) return absl::DataLossError("a list without a resourceVersion");
  if (listed.next.size() > kTokenBytes) {
    return absl::DataLossError("a list that goes on at a place of more than 4 KiB");
  }
  const auto items = json.find("items");
  // An empty list is null where Go has made it.
  if (items == json.end() || items->is_null()) return listed;
  if (!items->is_array()) return absl::DataLossError("a list without items");
  for (ApiJson& item : *items) listed.objects.push_back(std::move(item));
  return listed;
}

}  // namespace

absl::StatusOr<WatchLine> ParseWatchLine(std::string_view line) {
  ASSIGN_OR_RETURN(ApiJson json, ParseApiJson(line));
  const std::optional<WatchLine::Kind> kind = KindOf(TextAt(json, {"type"}));
  const auto object = json.find("object");
  if (!kind || object == json.end() || !object->is_object()) {
    return absl::DataLossError("a line that is no event of a watch");
  }
  WatchLine parsed{.kind = *kind, .object = std::move(*object)};
  if (parsed.kind == WatchLine::Kind::kError) {
    parsed.code = NumberAt(parsed.object, {"code"});
    return parsed;
  }
  parsed.version = TextAt(parsed.object, {"metadata", "resourceVersion"});
  if (!IsVersion(parsed.version)) return absl::DataLossError("an object without a resourceVersion");
  return parsed;
}

void ObjectWatch::OnSent(absl::Time now) {
  sent_ = now;
  due_ = absl::InfiniteFuture();
}

void ObjectWatch::Failed(const ApiAnswer& answer, Wants next, absl::Time now) {
  status_ = answer.status;
  pages_ = {};  // what is missing of a list may have changed: it begins anew
  wants_ = next;
  due_ = now + retry_.After(answer);
}

std::string ObjectWatch::ListQuery(const std::string& selector) const {
  if (page_ == 0) return selector;
  std::string query = absl::StrFormat("%s%slimit=%d", selector, selector.empty() ? "" : "&", page_);
  if (!pages_.next.empty()) query += "&continue=" + Escape(pages_.next);
  return query;
}

absl::Status ObjectWatch::TakePage(const std::string& body) {
  ASSIGN_OR_RETURN(Listed listed, ParseList(body));
  // All pages are of one moment; from the first one's on nothing can be missed.
  if (pages_.count == 0) pages_.version = std::move(listed.version);
  std::ranges::move(listed.objects, std::back_inserter(pages_.objects));
  pages_.bytes += body.size();
  if (++pages_.count > kMostPages || pages_.bytes > kListBytes) {
    return absl::DataLossError("a list of more than 256 pages or 16 MiB");
  }
  // Who was asked for all at once has nothing more.
  pages_.next = page_ == 0 ? "" : std::move(listed.next);
  return absl::OkStatus();
}

// The pauses stay as long as they have become: only a watch that lasts shows that all is well.
void ObjectWatch::OnList(const ApiAnswer& answer, absl::Time now) {
  if (!answer.status.ok()) return Failed(answer, Wants::kList, now);
  if (const absl::Status taken = TakePage(answer.body); !taken.ok()) {
    return Failed({.status = taken}, Wants::kList, now);
  }
  due_ = now;
  if (!pages_.next.empty()) return;
  Pages all = std::exchange(pages_, {});
  status_ = absl::OkStatus();
  version_ = std::move(all.version);
  news_.push_back({WatchNews::Kind::kAll, std::move(all.objects)});
  wants_ = Wants::kWatch;
}

bool ObjectWatch::OnError(const WatchLine& line, absl::Time now) {
  // No code of an answer: the token was taken, so another one now would change nothing.
  ApiAnswer answer{.status = ApiError(line.code, DumpApiJson(line.object))};
  answer.retry_after = absl::Seconds(NumberAt(line.object, {"details", "retryAfterSeconds"}));
  answer.retry_after = std::min(answer.retry_after, absl::Minutes(10));
  // All but a server that is busy means that there is no way on from this version.
  Failed(answer, line.code == kTooMany ? Wants::kWatch : Wants::kList, now);
  return false;
}

bool ObjectWatch::OnLine(std::string_view text, absl::Time now) {
  status_ = absl::OkStatus();
  if (text.empty()) return true;
  absl::StatusOr<WatchLine> line = ParseWatchLine(text);
  if (!line.ok()) {
    Failed({.status = line.status()}, Wants::kList, now);
    return false;
  }
  if (line->kind == WatchLine::Kind::kError) return OnError(*line, now);
  version_ = line->version;
  if (line->kind == WatchLine::Kind::kBookmark) return true;
  WatchNews news{
      line->kind == WatchLine::Kind::kGone ? WatchNews::Kind::kGone : WatchNews::Kind::kSet, {}};
  news.objects.push_back(std::move(line->object));
  news_.push_back(std::move(news));
  return true;
}

void ObjectWatch::OnEnd(const ApiAnswer& answer, absl::Time now) {
  const bool lasted = now - sent_ >= limits_.first && answer.code == 200;
  if (lasted) retry_.Succeeded();
  if (answer.status.ok() && lasted) {
    due_ = now;
    return;
  }
  ApiAnswer failure = answer;
  // A server that ends every watch at once would otherwise be asked without a pause.
  if (answer.status.ok()) failure.status = absl::UnavailableError("the watch ended at once");
  Failed(failure, answer.code == kExpired ? Wants::kList : Wants::kWatch, now);
}

}  // namespace vfio_agent
