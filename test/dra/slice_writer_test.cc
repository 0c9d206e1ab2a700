#include "agent/dra/slice_writer.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kPause = absl::Seconds(1);
const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

std::vector<DraDevice> Many(size_t count) {
  std::vector<DraDevice> devices;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = absl::StrFormat("device-%03d", i);
    devices.push_back({.name = name, .resource = "nvidia.com/X", .unit = name});
  }
  return devices;
}

ApiAnswer Fine(const ApiJson& object) { return {.code = 200, .body = DumpApiJson(object)}; }

// The writer, and an API server that does what it is told.
struct Story {
  SliceWriter writer{{.driver = "vfio-agent", .node = "node-1", .pause = kPause}};
  absl::Time now = kStart;
  int version = 1;
  ApiJson last;  // the slice written last

  // Answers all calls that are due; what they were: "node apply apply remove".
  std::string Run() {
    std::string said;
    for (auto call = writer.Next(now); call; call = writer.Next(now)) {
      said += said.empty() ? "" : " ";
      switch (call->kind) {
        case SliceCall::Kind::kReadNode:
          said += "node";
          writer.OnAnswer(Fine({{"metadata", {{"uid", "n-1"}}}}), now);
          break;
        case SliceCall::Kind::kApply:
          said += "apply";
          last = ApiJson(call->document);
          last["metadata"]["resourceVersion"] = absl::StrFormat("%d", ++version);
          writer.OnAnswer(Fine(last), now);
          break;
        case SliceCall::Kind::kRemove:
          said += "remove";
          writer.OnAnswer({.status = absl::NotFoundError("")}, now);
          break;
      }
    }
    return said;
  }
  void List(const std::vector<ApiJson>& objects = {}) {
    writer.Saw({.kind = WatchNews::Kind::kAll, .objects = objects});
  }
};

TEST_CASE("nothing is written before it is known what stands there", "[dra]") {
  Story story;
  CHECK(story.Run() == "");
  story.writer.Want(Many(1));
  CHECK(story.Run() == "");
  story.List();
  CHECK(story.Run() == "node apply");
  CHECK(story.writer.written());
  CHECK(story.writer.due() == absl::InfiniteFuture());
}

TEST_CASE("the watch that is behind our own answers makes no new round", "[dra]") {
  Story story;
  story.writer.Want(Many(1));
  story.List();
  REQUIRE(story.Run() == "node apply");
  const ApiJson first = story.last;
  story.writer.Want(Many(2));
  story.now += kPause;
  REQUIRE(story.Run() == "node apply");
  story.writer.Saw({.kind = WatchNews::Kind::kSet, .objects = {first}});
  CHECK(story.writer.written());
  ApiJson gone = first;
  story.writer.Saw({.kind = WatchNews::Kind::kGone, .objects = {gone}});
  CHECK(story.writer.written());
  // And what is no echo does.
  gone["metadata"]["resourceVersion"] = "99";
  story.writer.Saw({.kind = WatchNews::Kind::kGone, .objects = {gone}});
  CHECK_FALSE(story.writer.written());
}

TEST_CASE("a slice that is removed before our own request is answered is written again", "[dra]") {
  Story story;
  story.writer.Want(Many(1));
  story.List();
  REQUIRE(story.writer.Next(story.now));
  story.writer.OnAnswer(Fine({{"metadata", {{"uid", "n-1"}}}}), story.now);
  const auto call = story.writer.Next(story.now);
  REQUIRE(call->kind == SliceCall::Kind::kApply);
  ApiJson made = ApiJson(call->document);
  made["metadata"]["resourceVersion"] = "7";
  ApiJson removed = made;
  removed["metadata"]["resourceVersion"] = GENERATE("7", "8");
  story.writer.Saw({.kind = WatchNews::Kind::kSet, .objects = {made}});
  story.writer.Saw({.kind = WatchNews::Kind::kGone, .objects = {removed}});
  story.writer.OnAnswer(Fine(made), story.now);
  CHECK_FALSE(story.writer.written());
  story.version = 8;
  story.now = story.writer.due();
  CHECK(story.Run() == "node apply");
  CHECK(story.writer.written());
}

TEST_CASE("two rounds have a pause between them", "[dra]") {
  Story story;
  story.writer.Want(Many(1));
  story.List();
  REQUIRE(story.Run() == "node apply");
  story.writer.Want(Many(2));
  CHECK(story.Run() == "");
  CHECK(story.writer.due() == kStart + kPause);
}

TEST_CASE("a failure begins a new round, with a higher generation, after a pause", "[dra]") {
  Story story;
  story.writer.Want(Many(130));
  story.List();
  REQUIRE(story.writer.Next(story.now)->kind == SliceCall::Kind::kReadNode);
  story.writer.OnAnswer(Fine({{"metadata", {{"uid", "n-1"}}}}), story.now);
  REQUIRE(story.writer.Next(story.now)->kind == SliceCall::Kind::kApply);
  CHECK_FALSE(story.writer.Next(story.now));  // one at a time
  story.writer.OnAnswer({.status = absl::UnavailableError("no"), .code = 500}, story.now);
  CHECK(story.writer.status().message() == "no");
  CHECK(story.Run() == "");
  story.now = story.writer.due();
  CHECK(story.Run() == "node apply apply");
  CHECK(story.last["spec"]["pool"]["generation"] == 2);
  CHECK(story.writer.status().ok());
}

TEST_CASE("slices that are gone already are removed", "[dra]") {
  Story story;
  story.writer.Want(Many(1));
  story.List();
  REQUIRE(story.Run() == "node apply");
  story.writer.Want({});
  story.now += kPause;
  CHECK(story.Run() == "node remove");
  CHECK(story.writer.written());
}

TEST_CASE("an answer of another shape than a slice's is none of ours", "[dra]") {
  Story story;
  story.writer.Want(Many(1));
  story.List(
      {ApiJson::object(), {{"metadata", 1}}, {{"metadata", {{"name", "x"}}}, {"spec", "y"}}});
  CHECK(story.Run() == "node apply");
}

}  // namespace
}  // namespace vfio_agent
