// What is asked for next, after whatever an API server may say.
#include "agent/cluster/object_watch.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_format.h"
#include "test/cluster/support.h"

namespace vfio_agent {
namespace {

using Wants = ObjectWatch::Wants;

const absl::Time kStart = absl::FromUnixSeconds(1000);
constexpr absl::Duration kFirst = absl::Seconds(1);
constexpr absl::Duration kLongest = absl::Minutes(1);

ObjectWatch NewWatch() { return ObjectWatch({.first = kFirst, .longest = kLongest, .seed = 7}); }

std::string ListText(const std::string& version) {
  return absl::StrFormat(R"({"metadata":{"resourceVersion":"%s"},"items":[%s]})", version,
                         NodeText("5", {}));
}

// One object of a list that goes on at `next`, if anywhere.
std::string PageText(const std::string& version, const std::string& next) {
  return absl::StrFormat(R"({"metadata":{"resourceVersion":"%s","continue":"%s"},"items":[%s]})",
                         version, next, NodeText("5", {}));
}

ObjectWatch PagedWatch() {
  return ObjectWatch({.first = kFirst, .longest = kLongest, .seed = 7}, 2);
}

std::string Line(const std::string& type, const std::string& version) {
  return absl::StrFormat(R"({"type":"%s","object":%s})", type, NodeText(version, {}));
}

std::string ErrorLine(int code, int retry_after = 0) {
  return absl::StrFormat(
      R"({"type":"ERROR","object":{"kind":"Status","code":%d,"details":{"retryAfterSeconds":%d}}})",
      code, retry_after);
}

// Listed at version 10, and watching since `kStart`.
ObjectWatch Watching() {
  ObjectWatch watch = NewWatch();
  watch.OnSent(kStart);
  watch.OnList(Success(ListText("10")), kStart);
  watch.TakeNews();
  watch.OnSent(kStart);
  CHECK(watch.OnLine("", kStart));
  return watch;
}

void CheckPaused(const ObjectWatch& watch, absl::Time now, absl::Duration longest) {
  CHECK(watch.due() - now >= kFirst / 2);
  CHECK(watch.due() - now <= longest);
}

}  // namespace

TEST_CASE("a list comes first, then a watch from its version") {
  ObjectWatch watch = NewWatch();
  CHECK(watch.wants() == Wants::kList);
  CHECK(watch.due() <= kStart);
  CHECK_FALSE(watch.status().ok());
  watch.OnSent(kStart);
  CHECK(watch.due() == absl::InfiniteFuture());
  watch.OnList(Success(ListText("10")), kStart);
  CHECK(watch.status().ok());
  CHECK(watch.wants() == Wants::kWatch);
  CHECK(watch.version() == "10");
  CHECK(watch.due() == kStart);
  const std::vector<WatchNews> news = watch.TakeNews();
  REQUIRE(news.size() == 1);
  CHECK(news[0].kind == WatchNews::Kind::kAll);
  CHECK(news[0].objects.size() == 1);
}

TEST_CASE("a list without items is an empty one, and one without a version is none") {
  ObjectWatch watch = NewWatch();
  watch.OnList(Success(R"({"metadata":{"resourceVersion":"3"},"items":null})"), kStart);
  CHECK(watch.TakeNews().at(0).objects.empty());
  for (const char* text :
       {"", "[]", R"({"items":[]})", R"({"metadata":{"resourceVersion":"3&x="}})",
        R"({"metadata":{"resourceVersion":"3"},"items":{}})"}) {
    CAPTURE(text);
    ObjectWatch broken = NewWatch();
    broken.OnList(Success(text), kStart);
    CHECK(broken.wants() == Wants::kList);
    CHECK(broken.TakeNews().empty());
    CHECK(absl::IsDataLoss(broken.status()));
    CheckPaused(broken, kStart, kFirst);
  }
}

TEST_CASE("a long list is asked for page by page, told as one, and watched from its moment") {
  ObjectWatch watch = PagedWatch();
  CHECK(watch.ListQuery("a=b") == "a=b&limit=2");
  CHECK(watch.ListQuery("") == "limit=2");
  watch.OnSent(kStart);
  watch.OnList(Success(PageText("10", "x&limit=9/+")), kStart);
  CHECK(watch.wants() == Wants::kList);
  CHECK(watch.due() == kStart);
  CHECK(watch.ListQuery("a=b") == "a=b&limit=2&continue=x%26limit%3D9%2F%2B");
  CHECK(watch.TakeNews().empty());
  CHECK_FALSE(watch.status().ok());
  watch.OnList(Success(PageText("11", "y")), kStart);
  CHECK(watch.ListQuery("") == "limit=2&continue=y");
  watch.OnList(Success(PageText("12", "")), kStart);
  CHECK(watch.wants() == Wants::kWatch);
  CHECK(watch.version() == "10");
  CHECK(watch.status().ok());
  const std::vector<WatchNews> news = watch.TakeNews();
  REQUIRE(news.size() == 1);
  CHECK(news[0].objects.size() == 3);
}

TEST_CASE("a list whose rest has expired, or failed, begins anew after a pause") {
  const int code = GENERATE(410, 500);
  ObjectWatch watch = PagedWatch();
  watch.OnList(Success(PageText("10", "x")), kStart);
  watch.OnList(Failure(code), kStart);
  CHECK(watch.wants() == Wants::kList);
  CHECK(watch.ListQuery("") == "limit=2");
  CheckPaused(watch, kStart, kFirst);
  watch.OnList(Success(PageText("20", "")), kStart);
  CHECK(watch.version() == "20");
  CHECK(watch.TakeNews().at(0).objects.size() == 1);
}

TEST_CASE("a list that never ends, or is asked to go on at an endless place, is none") {
  ObjectWatch watch = PagedWatch();
  int pages = 0;
  while (!absl::IsDataLoss(watch.status()) && pages < 1000) {
    watch.OnList(Success(PageText("10", "x")), kStart);
    ++pages;
  }
  CHECK(pages == 257);
  CHECK(watch.ListQuery("") == "limit=2");
  CheckPaused(watch, kStart, kFirst);
  ObjectWatch heavy = PagedWatch();
  const std::string large = std::string(size_t{3} << 20, ' ') + PageText("10", "x");
  for (int i = 0; i < 6; ++i) heavy.OnList(Success(large), kStart);
  CHECK(absl::IsDataLoss(heavy.status()));
  ObjectWatch far = PagedWatch();
  far.OnList(Success(PageText("10", std::string(5000, 'x'))), kStart);
  CHECK(absl::IsDataLoss(far.status()));
}

TEST_CASE("who asked for a list as a whole has it as a whole") {
  ObjectWatch watch = NewWatch();
  CHECK(watch.ListQuery("a=b") == "a=b");
  watch.OnList(Success(PageText("10", "x")), kStart);
  CHECK(watch.wants() == Wants::kWatch);
}

TEST_CASE("lines of a watch are told, and a watch that ends in order goes on from the last one") {
  ObjectWatch watch = Watching();
  CHECK(watch.OnLine(Line("MODIFIED", "11"), kStart));
  CHECK(watch.OnLine(Line("DELETED", "12"), kStart));
  CHECK(watch.OnLine(Line("ADDED", "13"), kStart));
  const std::vector<WatchNews> news = watch.TakeNews();
  REQUIRE(news.size() == 3);
  CHECK(news[0].kind == WatchNews::Kind::kSet);
  CHECK(news[1].kind == WatchNews::Kind::kGone);
  CHECK(news[2].kind == WatchNews::Kind::kSet);
  const absl::Time later = kStart + absl::Minutes(5);
  watch.OnEnd(Success(""), later);
  CHECK(watch.wants() == Wants::kWatch);
  CHECK(watch.version() == "13");
  CHECK(watch.due() == later);
  CHECK(watch.status().ok());
}

TEST_CASE("a bookmark moves the version and tells nothing") {
  ObjectWatch watch = Watching();
  CHECK(watch.OnLine(R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"99"}}})",
                     kStart));
  CHECK(watch.version() == "99");
  CHECK(watch.TakeNews().empty());
}

TEST_CASE("a version that is too old means a new list, told as an answer or in the stream") {
  ObjectWatch told = Watching();
  CHECK_FALSE(told.OnLine(ErrorLine(410), kStart));
  CHECK(told.wants() == Wants::kList);
  CheckPaused(told, kStart, kFirst);
  ObjectWatch answered = Watching();
  answered.OnEnd(Failure(410), kStart);
  CHECK(answered.wants() == Wants::kList);
  CheckPaused(answered, kStart, kFirst);
}

TEST_CASE("a server that is busy is asked again when it said so, from the same version") {
  ObjectWatch watch = Watching();
  CHECK_FALSE(watch.OnLine(ErrorLine(429, 17), kStart));
  CHECK(watch.wants() == Wants::kWatch);
  CHECK(watch.version() == "10");
  CHECK(watch.due() >= kStart + absl::Seconds(17));
  ObjectWatch patient = Watching();
  CHECK_FALSE(patient.OnLine(ErrorLine(429, 2'000'000'000), kStart));
  CHECK(patient.due() <= kStart + absl::Minutes(10));
}

TEST_CASE("other errors in the stream, and what is no line of a watch, mean a new list") {
  for (const std::string& line :
       {ErrorLine(500), std::string("{\"type\":\"MODIFIED\""), Line("MODIFIED", ""),
        Line("NEWS", "1"), std::string(R"({"type":"ADDED"})"), std::string("[]"),
        Line("ADDED", "1&limit=2")}) {
    CAPTURE(line);
    ObjectWatch watch = Watching();
    CHECK_FALSE(watch.OnLine(line, kStart));
    CHECK(watch.wants() == Wants::kList);
    CHECK_FALSE(watch.status().ok());
    CHECK(watch.TakeNews().empty());
    CheckPaused(watch, kStart, kFirst);
  }
}

TEST_CASE("a watch that is cut goes on from its version after a pause") {
  ObjectWatch watch = Watching();
  watch.OnLine(Line("MODIFIED", "11"), kStart);
  const absl::Time later = kStart + absl::Minutes(1);
  ApiAnswer cut = NoAnswer();
  cut.code = 200;
  watch.OnEnd(cut, later);
  CHECK(watch.wants() == Wants::kWatch);
  CHECK(watch.version() == "11");
  CHECK_FALSE(watch.status().ok());
  CheckPaused(watch, later, kFirst);
  watch.OnSent(watch.due());
  watch.OnLine("", watch.due());
  CHECK(watch.status().ok());
}

TEST_CASE(
    "a server that ends every watch at once is asked ever more slowly, and never not at all") {
  ObjectWatch watch = Watching();
  absl::Time now = kStart;
  absl::Duration last;
  for (int i = 0; i < 40; ++i) {
    watch.OnLine("", now);
    watch.OnLine(Line("MODIFIED", "11"), now);
    watch.OnEnd(Success(""), now);
    last = watch.due() - now;
    CHECK(last >= kFirst / 2);
    CHECK(last <= kLongest);
    now = watch.due();
    watch.OnSent(now);
  }
  CHECK(last >= kLongest / 2);
  // One that lasts makes good for all.
  now += absl::Minutes(5);
  watch.OnEnd(Success(""), now);
  CHECK(watch.due() == now);
  watch.OnSent(now);
  watch.OnEnd(NoAnswer(), now);
  CheckPaused(watch, now, kFirst);
}

TEST_CASE("a token that is not taken is read anew at once, then after pauses") {
  ObjectWatch watch = NewWatch();
  watch.OnList(Failure(401), kStart);
  CHECK(watch.due() == kStart);
  watch.OnList(Failure(401), kStart);
  CheckPaused(watch, kStart, kFirst);
}

TEST_CASE("a refusal in the stream is none of the token: a new list after a pause") {
  const int code = GENERATE(401, 403);
  ObjectWatch watch = Watching();
  CHECK_FALSE(watch.OnLine(ErrorLine(code), kStart));
  CHECK(watch.wants() == Wants::kList);
  CheckPaused(watch, kStart, kFirst);
}

TEST_CASE("who may not watch asks again after the longest pause") {
  ObjectWatch watch = NewWatch();
  watch.OnList(Failure(403), kStart);
  CHECK(watch.due() == kStart + kLongest);
  CHECK(absl::IsPermissionDenied(watch.status()));
}

}  // namespace vfio_agent
