// What is written to the Node, and when: values, no server.
#include "agent/cluster/node_writer.h"

#include <catch2/catch.hpp>

#include "test/cluster/support.h"

namespace vfio_agent {
namespace {

using Part = NodeWrite::Part;
using Labels = std::map<std::string, std::string>;

constexpr absl::Duration kPause = absl::Seconds(30);
const Labels kWorks = {{"vfio-agent/mode.state", "ready"}};

NodeWriter::Options TestOptions() {
  return {.node = kNode,
          .limits = {.first = absl::Seconds(1), .longest = absl::Minutes(1), .seed = 3},
          .own_pause = absl::Seconds(1),
          .rewrite_pause = kPause,
          .heartbeat = absl::Minutes(5)};
}

// A writer and the clock that it is told.
struct Story {
  NodeWriter writer{TestOptions()};
  absl::Time now = absl::FromUnixSeconds(1'790'000'000);
  int version = 10;

  Moment Now() const { return {now, now}; }
  void Shows(const Labels& labels, const std::string& condition = "") {
    const std::string text = NodeText(std::to_string(++version), labels, condition);
    writer.Saw(ReadNode(*ParseApiJson(text)));
  }
  std::optional<NodeWrite> Next() { return writer.Next(Now()); }
  void Answer(const Labels& labels, const std::string& condition = "") {
    writer.OnAnswer(Success(NodeText(std::to_string(++version), labels, condition)), Now());
  }
  // What is to be written goes through, until the server has it all.
  void Settle(const Labels& labels, const std::string& condition) {
    while (const auto write = Next()) {
      Answer(labels, condition);
      now += absl::Seconds(2);
    }
  }
};

}  // namespace

TEST_CASE("nothing is written before something is wanted, and the Node was seen") {
  Story story;
  CHECK_FALSE(story.Next());
  story.writer.Want({.condition = Ready()});
  CHECK(story.writer.due() == absl::InfiniteFuture());
  CHECK_FALSE(story.Next());
  CHECK_FALSE(story.writer.written());
  story.Shows({});
  CHECK(story.Next());
}

TEST_CASE("a condition is applied with its times, and only while it differs") {
  Story story;
  story.Shows({});
  story.writer.Want({.condition = Ready()});
  const auto write = story.Next();
  REQUIRE(write);
  CHECK(write->part == Part::kCondition);
  CHECK(
      write->document.dump() ==
      R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-1"},"status":{"conditions":[)"
      R"({"lastHeartbeatTime":"2026-09-21T14:13:20Z","lastTransitionTime":"2026-09-21T14:13:20Z",)"
      R"("message":"2 of 2","reason":"AllServed","status":"True","type":"PassthroughReady"}]}})");
  CHECK(story.writer.due() == absl::InfiniteFuture());
  story.Answer({}, "True");
  CHECK(story.writer.written());
  CHECK(story.writer.due() == story.now + absl::Minutes(5));
  CHECK_FALSE(story.Next());
}

TEST_CASE("the time of the last transition stays where only the message is another") {
  Story story;
  story.Shows({}, "True");
  story.writer.Want({.condition = Ready("True", "3 of 3")});
  CHECK(story.Next()->document["status"]["conditions"][0]["lastTransitionTime"] ==
        "2026-01-01T00:00:00Z");
  Story other;
  other.Shows({}, "True");
  other.writer.Want({.condition = Ready("False")});
  CHECK(other.Next()->document["status"]["conditions"][0]["lastTransitionTime"] ==
        "2026-09-21T14:13:20Z");
}

TEST_CASE("a condition that is no longer wanted is taken back") {
  Story story;
  story.Shows({}, "True");
  story.writer.Want({});
  const auto write = story.Next();
  REQUIRE(write);
  CHECK(write->document["status"].dump() == "{}");
  story.Answer({});
  CHECK(story.writer.written());
  CHECK(story.writer.due() == absl::InfiniteFuture());
}

TEST_CASE("the heartbeat is written in its time and counts as nobody's change") {
  Story story;
  story.Shows({});
  story.writer.Want({.condition = Ready()});
  story.Settle({}, "True");
  for (int i = 0; i < 5; ++i) {
    story.now = story.writer.due();
    REQUIRE(story.Next());
    story.Answer({}, "True");
  }
  CHECK(story.writer.rewrites() == 0);
}

TEST_CASE("labels of ours are applied; those that nobody wants any more go by name") {
  Story story;
  story.Shows({{"vfio-agent/old", "x"}, {"kubernetes.io/hostname", "gpu-1"}});
  story.writer.Want({.labels = {{"vfio-agent/mode.state", "ready"}, {"other.io/x", "not ours"}},
                     .keeps_labels = true});
  const auto write = story.Next();
  REQUIRE(write);
  CHECK(write->part == Part::kLabels);
  CHECK(write->document["metadata"]["labels"].dump() == R"({"vfio-agent/mode.state":"ready"})");
  // Somebody else had set the old one, too: it is there still.
  story.Answer({{"vfio-agent/old", "x"}, {"vfio-agent/mode.state", "ready"}});
  CHECK_FALSE(story.writer.written());
  story.now += absl::Seconds(1);
  const auto rest = story.Next();
  REQUIRE(rest);
  CHECK(rest->part == Part::kStaleLabels);
  CHECK(rest->document.dump() == R"({"metadata":{"labels":{"vfio-agent/old":null}}})");
  story.Answer(kWorks);
  CHECK(story.writer.written());
}

TEST_CASE("labels that somebody else keeps are left alone") {
  Story story;
  story.Shows(kWorks);
  story.writer.Want({});
  CHECK_FALSE(story.Next());
  CHECK(story.writer.written());
}

TEST_CASE("what somebody else changes is put right once, then ever more slowly, and is told") {
  Story story;
  story.Shows(kWorks);
  story.writer.Want({.labels = kWorks, .keeps_labels = true});
  story.writer.Want({.condition = Ready(), .labels = kWorks, .keeps_labels = true});
  story.Settle(kWorks, "True");
  absl::Time last = story.now - absl::Seconds(2);
  for (int i = 0; i < 8; ++i) {
    story.Shows(kWorks, "False");
    const absl::Duration pause = story.writer.due() - last;
    CHECK(pause >= kPause * (1 << std::min(i, 5)));
    CHECK(pause <= kPause * 32);
    CHECK_FALSE(story.Next());
    story.now = last = story.writer.due();
    REQUIRE(story.Next());
    story.Answer(kWorks, "True");
    CHECK(story.writer.rewrites() == i + 1);
  }
  // After hours of peace the next one is the first again.
  story.now += absl::Hours(2);
  story.Shows(kWorks, "False");
  CHECK(story.writer.due() <= story.now);
  REQUIRE(story.Next());
  story.Answer(kWorks, "True");
  CHECK(story.writer.rewrites() == 1);
}

TEST_CASE("whoever changes his mind with every turn writes once a second") {
  Story story;
  story.Shows({});
  story.writer.Want({.condition = Ready("True", "1")});
  REQUIRE(story.Next());
  story.Answer({}, "False");  // not what was meant, but of our own second
  story.writer.Want({.condition = Ready("True", "2")});
  CHECK_FALSE(story.Next());
  CHECK(story.writer.due() == story.now + absl::Seconds(1));
}

TEST_CASE("last words need not wait for a second after those before them") {
  Story story;
  story.Shows({});
  story.writer.Want({.condition = Ready("True", "1")});
  REQUIRE(story.Next());
  story.Answer({}, "False");
  story.writer.Want({.condition = Ready("Unknown", "2")});
  story.writer.Hurry();
  CHECK(story.Next());
}

TEST_CASE("a watch that is behind the answer to our own write changes nothing") {
  Story story;
  story.Shows({});
  story.writer.Want({.condition = Ready()});
  REQUIRE(story.Next());
  story.Answer({}, "True");
  story.writer.Saw(ReadNode(*ParseApiJson(NodeText("11", {}))));
  CHECK(story.writer.written());
  // Where a version is no number, nobody knows which is newer.
  story.writer.Saw(ReadNode(*ParseApiJson(NodeText("x", {}))));
  CHECK_FALSE(story.writer.written());
}

TEST_CASE("what a list shows counts also where its version is lower: etcd may have been restored") {
  Story story;
  story.Shows({}, "True");
  story.writer.Want({.condition = Ready()});
  CHECK(story.writer.written());
  story.writer.Saw(ReadNode(*ParseApiJson(NodeText("3", {}))), true);
  CHECK_FALSE(story.writer.written());
}

TEST_CASE("a Node that was made anew is written to, also where its versions are lower") {
  Story story;
  story.Shows({});
  story.writer.Want({.condition = Ready()});
  story.Settle({}, "True");
  story.writer.Saw(std::nullopt);
  CHECK(story.writer.due() == absl::InfiniteFuture());
  ApiNode fresh = ReadNode(*ParseApiJson(NodeText("1", {})));
  fresh.uid = "u-2";
  story.writer.Saw(fresh);
  story.now += absl::Seconds(1);
  CHECK(story.Next());
}

TEST_CASE("a failed write is made again after a pause, with what is wanted by then") {
  Story story;
  story.Shows({});
  story.writer.Want({.condition = Ready("True")});
  REQUIRE(story.Next());
  story.writer.OnAnswer(Failure(409, "modified", "Conflict"), story.Now());
  CHECK(absl::IsAborted(story.writer.status()));
  CHECK(story.writer.due() > story.now);
  CHECK(story.writer.due() <= story.now + absl::Seconds(1));
  story.writer.Want({.condition = Ready("False")});
  story.now = story.writer.due();
  CHECK(story.Next()->document["status"]["conditions"][0]["status"] == "False");
  story.Answer({}, "False");
  CHECK(story.writer.status().ok());
}

TEST_CASE("a condition that may not be written holds up no labels, and no labels a condition") {
  Story story;
  story.Shows({});
  story.writer.Want({.condition = Ready(), .labels = kWorks, .keeps_labels = true});
  CHECK(story.Next()->part == Part::kCondition);
  story.writer.OnAnswer(Failure(403), story.Now());
  REQUIRE(story.Next()->part == Part::kLabels);
  story.Answer(kWorks);
  CHECK(absl::IsPermissionDenied(story.writer.status()));
  CHECK(story.writer.due() == story.now + absl::Minutes(1));
  story.writer.Want({.condition = Ready(), .keeps_labels = true});
  story.now += absl::Seconds(1);
  REQUIRE(story.Next()->part == Part::kStaleLabels);
  story.writer.OnAnswer(Failure(403), story.Now());
  story.now += absl::Minutes(1) - absl::Seconds(1);
  REQUIRE(story.Next()->part == Part::kCondition);
  story.Answer(kWorks, "True");
  CHECK(absl::IsPermissionDenied(story.writer.status()));
  story.writer.Want({.condition = Ready()});
  CHECK(story.writer.status().ok());
}

TEST_CASE("who may not look at the Node writes all the same, once for each wish") {
  Story story;
  story.writer.Want({.condition = Ready()});
  story.writer.Blind();
  REQUIRE(story.Next());
  story.Answer({}, "True");
  CHECK(story.writer.written());
  CHECK_FALSE(story.Next());
  story.writer.Want({.condition = Ready("False")});
  story.now += absl::Seconds(1);
  CHECK(story.Next());
}

TEST_CASE("a message that is no UTF-8 does not differ for ever") {
  Story story;
  story.Shows({});
  story.writer.Want({.condition = Ready("True", "a\xff")});
  const auto write = story.Next();
  REQUIRE(write);
  ApiJson node = *ParseApiJson(NodeText("99", {}));
  node["status"]["conditions"] =
      ApiJson::parse(DumpApiJson(write->document))["status"]["conditions"];
  story.writer.OnAnswer(Success(node.dump()), story.Now());
  CHECK(story.writer.written());
}

}  // namespace vfio_agent
