#include "agent/work/journal.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "test/agent/program.h"

namespace vfio_agent {
namespace {

PciAddress At(const char* address) { return *PciAddress::Parse(address); }

Record Taken(const char* address, const char* boot = "boot-1") {
  return {.address = At(address),
          .vendor = 0x10de,
          .device = 0x2330,
          .boot_id = boot,
          .group = 26,
          .members = {At("0000:01:00.0"), At("0000:01:00.1")},
          .driver = "nvidia",
          .driver_override = "nvidia",
          .d3cold_allowed = true,
          .to = "vfio-pci",
          .step = kStepDone};
}

Records ReadAll(const Journal& journal) {
  std::vector<Journal::Unreadable> unreadable;
  const absl::StatusOr<Records> records = journal.Read(unreadable);
  REQUIRE(records.ok());
  REQUIRE(unreadable.empty());
  return *records;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("what the journal was told is read back by the next process", "[agent]") {
  const ScratchDir dir;
  const std::string state = dir.path() + "/below/state";
  REQUIRE(Journal(state, "boot-1").Write(Taken("0000:01:00.0")).ok());
  Record expected = Taken("0000:01:00.0");
  expected.this_boot = true;
  CHECK(ReadAll(Journal(state, "boot-1")).at(At("0000:01:00.0")) == expected);
}

TEST_CASE(
    "the VFs that were made, and the vGPU type that was set, are in a record, and in no other",
    "[agent]") {
  const ScratchDir dir;
  Record record = Taken("0000:01:00.0");
  record.this_boot = true;
  CHECK(RecordToText(record).find("vfs") == std::string::npos);
  CHECK(RecordToText(record).find("vgpu") == std::string::npos);
  record.vfs = 4;
  record.vfs_autoprobe = true;
  record.vgpu_type = 1145;
  record.vgpu_name = "NVIDIA L40S-1B";
  REQUIRE(Journal(dir.path(), "boot-1").Write(record).ok());
  CHECK(ReadAll(Journal(dir.path(), "boot-1")).at(At("0000:01:00.0")) == record);
}

TEST_CASE("a record of an earlier boot claims nothing", "[agent]") {
  const ScratchDir dir;
  REQUIRE(Journal(dir.path(), "boot-1").Write(Taken("0000:01:00.0")).ok());
  const Record record = ReadAll(Journal(dir.path(), "boot-2")).begin()->second;
  CHECK_FALSE(record.this_boot);
  CHECK_FALSE(record.IsTaken());
  CHECK_FALSE(record.IsUnfinished());
}

TEST_CASE("a boot without an id claims nothing", "[agent]") {
  const ScratchDir dir;
  REQUIRE(Journal(dir.path(), "").Write(Taken("0000:01:00.0", "")).ok());
  CHECK_FALSE(ReadAll(Journal(dir.path(), "")).begin()->second.this_boot);
}

TEST_CASE("a forgotten device has no record", "[agent]") {
  const ScratchDir dir;
  const Journal journal(dir.path(), "boot-1");
  REQUIRE(journal.Write(Taken("0000:01:00.0")).ok());
  REQUIRE(journal.Forget(At("0000:01:00.0")).ok());
  REQUIRE(journal.Forget(At("0000:01:00.0")).ok());
  CHECK(ReadAll(journal).empty());
}

TEST_CASE("a record that cannot be read just now is no broken one", "[agent]") {
  const ScratchDir dir;
  const Journal journal(dir.path(), "boot-1");
  std::filesystem::create_directories(dir.path() + "/devices/0000:01:00.0.json");  // EISDIR
  std::ofstream(dir.path() + "/devices/0000:02:00.0.json") << "{";
  std::vector<Journal::Unreadable> unreadable;
  REQUIRE(journal.Read(unreadable).ok());
  REQUIRE(unreadable.size() == 2);
  for (const Journal::Unreadable& file : unreadable) {
    CHECK(file.broken == file.path.ends_with("0000:02:00.0.json"));
  }
}

TEST_CASE("no directory means no records", "[agent]") {
  CHECK(ReadAll(Journal("/nonexistent/state", "")).empty());
}

TEST_CASE("a journal file that does not check is no record, and is kept aside", "[agent]") {
  struct Row {
    const char* what;
    std::string text;
    const char* why;
  };
  const std::string good = RecordToText(Taken("0000:01:00.0"));
  std::string flipped = good;
  flipped.replace(flipped.find("\"driver\":\"nvidia\""), 17, "\"driver\":\"nvidiX\"");
  std::string newer = good;
  newer.replace(newer.find("journal/v1"), 10, "journal/v2");
  const Row row = GENERATE_COPY(
      Row{"empty", "", "no JSON object"}, Row{"cut short", good.substr(0, 40), "no JSON object"},
      Row{"one letter changed", flipped, "checksum"}, Row{"newer", newer, "another version"},
      Row{"another document", "{\"schema\": \"other\"}", "no record"},
      Row{"another device's", RecordToText(Taken("0000:02:00.0")), "speaks of 0000:02:00.0"});
  CAPTURE(row.what);
  const ScratchDir dir;
  const Journal journal(dir.path(), "boot-1");
  REQUIRE(journal.Write(Taken("0000:01:00.1")).ok());
  const std::string path = dir.Write("devices/0000:01:00.0.json", row.text);
  std::vector<Journal::Unreadable> unreadable;
  CHECK(journal.Read(unreadable)->size() == 1);
  REQUIRE(unreadable.size() == 1);
  CHECK(unreadable.front().path == path);
  CHECK_THAT(unreadable.front().why, Catch::Contains(row.why));
  REQUIRE(journal.SetAside(unreadable.front()).ok());
  CHECK(ReadAll(journal).size() == 1);
  CHECK(ReadFile(path + ".aside-1") == row.text);
  // A second one does not take the first one's place.
  dir.Write("devices/0000:01:00.0.json", "again");
  REQUIRE(journal.SetAside(unreadable.front()).ok());
  CHECK(ReadFile(path + ".aside-1") == row.text);
  CHECK(ReadFile(path + ".aside-2") == "again");
}

TEST_CASE("a link in the journal's place is not followed", "[agent]") {
  const ScratchDir dir;
  const std::string elsewhere = dir.Write("secret", RecordToText(Taken("0000:01:00.0")));
  std::filesystem::create_directory(dir.path() + "/devices");
  std::filesystem::create_symlink(elsewhere, dir.path() + "/devices/0000:01:00.0.json");
  std::vector<Journal::Unreadable> unreadable;
  CHECK(Journal(dir.path(), "boot-1").Read(unreadable)->empty());
  CHECK(unreadable.size() == 1);
}

TEST_CASE("an override that is no text is journalled all the same", "[agent]") {
  Record record = Taken("0000:01:00.0");
  record.driver_override = "\xff\xfe";
  CHECK(ParseRecord(RecordToText(record)).ok());
}

TEST_CASE("where nothing can be written the old record stays", "[agent]") {
  const ScratchDir dir;
  const Journal journal(dir.path(), "boot-1");
  REQUIRE(journal.Write(Taken("0000:01:00.0")).ok());
  // The file that is written first is in the way as a directory.
  std::filesystem::create_directory(dir.path() + "/devices/0000:01:00.0.json.new");
  Record changed = Taken("0000:01:00.0");
  changed.step = "unbind";
  CHECK_FALSE(journal.Write(changed).ok());
  CHECK(ReadAll(journal).begin()->second.step == kStepDone);
}

}  // namespace
}  // namespace vfio_agent
