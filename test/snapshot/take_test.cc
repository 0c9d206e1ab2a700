// TakeRecording: a read that does not return costs its own fact and no other.
#include "agent/snapshot/take.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>

#include "sysfs/status.h"
#include "test/agent/program.h"

namespace vfio_agent {
namespace {

// A read that hangs, as one of a device whose lock is held does.
void ReadStuck(const Tree& tree) {
  const auto stuck =
      Watched(tree.watch(), ReadKind::kText, "stuck", []() -> absl::StatusOr<std::string> {
        for (;;) ::pause();
      });
  stuck.IgnoreError();
  tree.ReadText("after").IgnoreError();
}

// Hangs where nobody tells of a read, as a look at a dead server's file does.
void HangUntold(const Tree& tree) {
  tree.ReadText("before").IgnoreError();
  for (;;) ::pause();
}

void ReadAfter(const Tree& tree) { tree.ReadText("after").IgnoreError(); }
void Crash(const Tree& /*tree*/) { ::kill(::getpid(), SIGKILL); }

Taken Take(const ScratchDir& dir, std::initializer_list<FactToTake> facts) {
  const absl::StatusOr<Tree> tree = Tree::Open(dir.path());
  REQUIRE(tree.ok());
  auto taken = TakeRecording(*tree, std::span(facts.begin(), facts.size()), nullptr);
  REQUIRE(taken.ok());
  return *std::move(taken);
}

TEST_CASE("a read that does not return is noted, and what comes behind it is read", "[snapshot]") {
  const ScratchDir dir;
  dir.Write("after", "here\n");
  const Taken taken = Take(dir, {{"stuck", ReadStuck, absl::Seconds(2)}});
  CHECK(taken.unfinished.empty());
  CHECK(taken.recording.items.at("after").text == "here\n");
  const auto failure = taken.recording.replay.failures.find({ReadKind::kText, "stuck"});
  REQUIRE(failure != taken.recording.replay.failures.end());
  CHECK(ErrnoOf(failure->second) == ETIMEDOUT);
}

TEST_CASE("a fact that is given up or crashes is named, and holders are not known then",
          "[snapshot]") {
  const ScratchDir dir;
  dir.Write("before", "x\n");
  dir.Write("after", "here\n");
  const Taken taken = Take(dir, {{"untold", HangUntold, absl::Seconds(2)},
                                 {"crash", Crash, absl::Seconds(10)},
                                 {"after", ReadAfter, absl::Seconds(10)}});
  REQUIRE(taken.unfinished.size() == 2);
  CHECK(taken.unfinished[0] == "untold: given up after before");
  CHECK_THAT(taken.unfinished[1], Catch::StartsWith("crash: given up"));
  CHECK(taken.recording.items.at("after").text == "here\n");
  CHECK(taken.recording.replay.notes.contains({ReadKind::kHidden, "descriptors"}));
}

TEST_CASE("every fact has a name and patience", "[snapshot]") {
  for (const FactToTake& fact : FactsToTake()) {
    CHECK(std::string(fact.name).size() > 3);
    CHECK(fact.patience > absl::ZeroDuration());
  }
}

}  // namespace
}  // namespace vfio_agent
