#include "sysfs/tree.h"

#include <fcntl.h>

#include <catch2/catch.hpp>
#include <cerrno>

#include "sysfs/status.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

TEST_CASE("a root that is not there is an error", "[sysfs]") {
  const FakeTree fake;
  CHECK(absl::IsNotFound(Tree::Open((fake.root() / "nowhere").string()).status()));
}

TEST_CASE("a path that begins with a slash, or is none, is refused", "[sysfs]") {
  FakeTree fake;
  const Tree tree = fake.Write("proc/cmdline", "quiet\n").Open();
  const std::string path = GENERATE("/proc/cmdline", "/etc/passwd", "/", "");
  CAPTURE(path);
  CHECK(absl::IsInvalidArgument(tree.ReadText(path).status()));
  CHECK_FALSE(tree.Exists(path));
}

TEST_CASE("one trailing newline is taken off a text, and no more", "[sysfs]") {
  FakeTree fake;
  const auto [text, expected] = GENERATE(table<std::string, std::string>(
      {{"0x10de\n", "0x10de"}, {"none", "none"}, {"a\n\n", "a\n"}, {"", ""}, {"\n", ""}}));
  CAPTURE(text);
  CHECK(*fake.Write("file", text).Open().ReadText("file") == expected);
}

TEST_CASE("a text of just the limit is read whole, one byte more is refused", "[sysfs]") {
  FakeTree fake;
  fake.Write("page", std::string(4096, 'x')).Write("more", std::string(4097, 'x'));
  fake.Write("much", std::string(20'000, 'y'));
  const Tree tree = fake.Open();
  CHECK(tree.ReadText("page")->size() == 4096);
  CHECK(absl::IsOutOfRange(tree.ReadText("more").status()));
  CHECK(absl::IsOutOfRange(tree.ReadText("page", 4095).status()));
  CHECK(absl::IsOutOfRange(tree.ReadText("much").status()));
  CHECK(tree.ReadText("much", 20'000)->size() == 20'000);
}

TEST_CASE("a link that leads out of the root is resolved inside it", "[sysfs]") {
  FakeTree fake;
  fake.Write("etc/passwd", "ours\n");
  std::filesystem::create_symlink("/etc/passwd", fake.root() / "absolute");
  std::filesystem::create_symlink("../../../../../../../../etc/passwd", fake.root() / "relative");
  std::filesystem::create_symlink("/etc/hostname", fake.root() / "outside");
  const Tree tree = fake.Open();
  CHECK(*tree.ReadText("absolute") == "ours");
  CHECK(*tree.ReadText("relative") == "ours");
  CHECK(*tree.ReadText("../../../../etc/passwd") == "ours");
  CHECK(absl::IsNotFound(tree.ReadText("outside").status()));
  CHECK_FALSE(tree.Exists("outside"));
}

TEST_CASE("links that go round in a circle are an error and not a hang", "[sysfs]") {
  FakeTree fake;
  fake.Link("a", "b").Link("b", "a").Link("self", "self");
  const Tree tree = fake.Open();
  CHECK(ErrnoOf(tree.ReadText("a").status()) == ELOOP);
  CHECK(ErrnoOf(tree.List("self").status()) == ELOOP);
  CHECK_FALSE(tree.Exists("a"));
  CHECK(*tree.ReadLinkName("a") == "b");  // the link itself can still be read
}

TEST_CASE("a missing file is NotFound and the message names it", "[sysfs]") {
  const FakeTree fake;
  const absl::Status status = fake.Open().ReadText("sys/bus/pci/devices/none/vendor").status();
  CHECK(absl::IsNotFound(status));
  CHECK(ErrnoOf(status) == ENOENT);
  CHECK(Message(status).find("sys/bus/pci/devices/none/vendor") != std::string::npos);
}

TEST_CASE("a directory is not a text", "[sysfs]") {
  FakeTree fake;
  fake.Write("dir/file", "");
  CHECK(ErrnoOf(fake.Open().ReadText("dir").status()) == EISDIR);
}

TEST_CASE("the name behind a link is the last part of its target", "[sysfs]") {
  FakeTree fake;
  fake.Link("sys/x/driver", "sys/bus/pci/drivers/nvidia").Write("sys/x/vendor", "");
  std::filesystem::create_symlink("alone", fake.root() / "top");
  const Tree tree = fake.Open();
  CHECK(*tree.ReadLinkName("sys/x/driver") == "nvidia");
  CHECK(*tree.ReadLink("sys/x/driver") == "../bus/pci/drivers/nvidia");
  CHECK(*tree.ReadLinkName("top") == "alone");
  CHECK(absl::IsNotFound(tree.ReadLinkName("sys/x/iommu_group").status()));
  CHECK(absl::IsInvalidArgument(tree.ReadLinkName("sys/x/vendor").status()));
}

TEST_CASE("entries of a directory are sorted and without dot files", "[sysfs]") {
  FakeTree fake;
  fake.Write("d/b", "").Write("d/.hidden", "").Write("d/a", "").Write("d/c/x", "");
  CHECK(*fake.Open().List("d") == std::vector<std::string>{"a", "b", "c"});
  CHECK(absl::IsNotFound(fake.Open().List("e").status()));
  CHECK(ErrnoOf(fake.Open().List("d/a").status()) == ENOTDIR);
}

TEST_CASE("an open directory neither reads through links nor takes a file for one", "[sysfs]") {
  FakeTree fake;
  fake.Write("secret", "no\n").Write("d/plain", "yes\n").Link("d/link", "secret");
  const Tree tree = fake.Open();
  const auto dir = TreeDir::Open(tree, "d");
  REQUIRE(dir.ok());
  CHECK(*dir->ReadText("plain") == "yes");
  CHECK(ErrnoOf(dir->ReadText("link").status()) == ELOOP);
  CHECK(*dir->ReadLinkName("link") == "secret");
  CHECK(ErrnoOf(dir->ReadLinkName("plain").status()) == EINVAL);
}

TEST_CASE("an open directory tells links apart and leaves dot files out", "[sysfs]") {
  FakeTree fake;
  fake.Write("d/plain", "").Link("d/link", "d/plain").Write("d/.hidden", "").Write("d/dir/x", "");
  const Tree tree = fake.Open();
  const auto dir = TreeDir::Open(tree, "d");
  REQUIRE(dir.ok());
  const auto entries = dir->List();
  REQUIRE(entries.ok());
  CHECK(entries->size() == 3);
  for (const Entry& entry : *entries) CHECK(entry.is_link == (entry.name == "link"));
}

TEST_CASE("a directory of thousands of entries is listed whole", "[sysfs]") {
  FakeTree fake;
  for (int i = 0; i < 3000; ++i) fake.Write("d/entry-" + std::to_string(10000 + i), "");
  const auto names = fake.Open().List("d");
  REQUIRE(names.ok());
  CHECK(names->size() == 3000);
  CHECK(names->front() == "entry-10000");
  CHECK(names->back() == "entry-12999");
}

TEST_CASE("an open directory knows its real place behind links", "[sysfs]") {
  FakeTree fake;
  fake.Add({.address = "0000:3b:00.0"});
  const Tree tree = fake.Open();
  const auto dir = TreeDir::Open(tree, "sys/bus/pci/devices/0000:3b:00.0");
  REQUIRE(dir.ok());
  CHECK(dir->RealPath()->ends_with("/sys/devices/pci0000:3b/0000:3b:00.0"));
}

TEST_CASE("only a root of '/' is the host", "[sysfs]") {
  const FakeTree fake;
  CHECK_FALSE(fake.Open().is_host());
  CHECK(Tree::Open("/")->is_host());
}

}  // namespace
}  // namespace vfio_agent
