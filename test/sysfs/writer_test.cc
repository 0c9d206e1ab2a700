#include "sysfs/writer.h"

#include <catch2/catch.hpp>
#include <cerrno>

#include "sysfs/status.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

constexpr char kProbe[] = "sys/bus/pci/drivers_probe";

TEST_CASE("the text is written as it is, newline and all", "[sysfs]") {
  FakeTree fake;
  const Tree tree = fake.Open();
  TreeWriter writer(tree);
  REQUIRE(writer.Write(kProbe, "0000:3b:00.0").ok());
  CHECK(fake.Read(kProbe) == "0000:3b:00.0");
  fake.Write("sys/override", "");
  REQUIRE(writer.Write("sys/override", "\n").ok());
  CHECK(fake.Read("sys/override") == "\n");
}

TEST_CASE("a write never creates a file", "[sysfs]") {
  FakeTree fake;
  const Tree tree = fake.Open();
  TreeWriter writer(tree);
  const absl::Status status = writer.Write("sys/bus/pci/new_file", "x");
  CHECK(ErrnoOf(status) == ENOENT);
  CHECK_FALSE(fake.Has("sys/bus/pci/new_file"));
}

TEST_CASE("the errno behind a failed write is kept, also where something is added", "[sysfs]") {
  FakeTree fake;
  fake.Write("sys/dir/file", "");
  const Tree tree = fake.Open();
  TreeWriter writer(tree);
  const absl::Status status = writer.Write("sys/dir", "x");
  CHECK(ErrnoOf(status) == EISDIR);
  CHECK(ErrnoOf(Annotate(status, "group 26")) == EISDIR);
  CHECK(Message(Annotate(status, "group 26")).starts_with("group 26: open sys/dir"));
  CHECK(ErrnoOf(absl::OkStatus()) == 0);
}

TEST_CASE("the kernel's own answer to the write is the error", "[sysfs]") {
  // /dev/full answers every write with ENOSPC, as an attribute answers with the errno of its store.
  const Tree tree = *Tree::Open("/dev");
  TreeWriter writer(tree);
  const absl::Status status = writer.Write("full", "x");
  CHECK(ErrnoOf(status) == ENOSPC);
  CHECK(Message(status).starts_with("write full: "));
}

TEST_CASE("a write through a link stays inside the root", "[sysfs]") {
  FakeTree fake, outside;
  outside.Write("victim", "untouched");
  std::filesystem::create_symlink(outside.root() / "victim", fake.root() / "link");
  const Tree tree = fake.Open();
  TreeWriter writer(tree);
  CHECK(ErrnoOf(writer.Write("link", "x")) == ENOENT);
  CHECK(outside.Read("victim") == "untouched");
}

TEST_CASE("an absolute path is refused before anything is opened", "[sysfs]") {
  const FakeTree fake;
  const Tree tree = fake.Open();
  TreeWriter writer(tree);
  CHECK(absl::IsInvalidArgument(writer.Write("/dev/null", "x")));
}

TEST_CASE("modules are loaded on the host only", "[sysfs]") {
  const FakeTree fake;
  const Tree tree = fake.Open();
  TreeWriter writer(tree);
  CHECK(absl::IsUnimplemented(writer.LoadModule("vfio-pci")));
}

}  // namespace
}  // namespace vfio_agent
