// ParseRecord: a journal file is a record whole or not at all, and is written back as it was read.
#include "agent/work/journal.h"
#include "test/fuzz/require.h"

namespace vfio_agent {
namespace {

void Check(std::string_view text) {
  const absl::StatusOr<Record> record = ParseRecord(text);
  if (!record.ok()) {
    const bool other = absl::IsUnimplemented(record.status());
    return RequireError(record.status(),
                        other ? absl::StatusCode::kUnimplemented : absl::StatusCode::kDataLoss);
  }
  Require(!record->this_boot, "a file alone claims nothing of this boot");
  Require(!record->IsTaken() && !record->IsUnfinished(), "nor is anything of it ours");
  const absl::StatusOr<Record> again = ParseRecord(RecordToText(*record));
  Require(again.ok() && *again == *record, "a record is read back as it was written", text);
}

// A record of the fuzzer's words, with the checksum that belongs to it.
void CheckWritten(std::string_view text) {
  Record record{.address = {.domain = 1, .bus = 0x3b, .device = 0, .function = 1}};
  const size_t half = text.size() / 2;
  record.driver = text.substr(0, half);
  record.step = text.substr(half);
  record.members = {record.address};
  const absl::StatusOr<Record> read = ParseRecord(RecordToText(record));
  Require(read.ok() && read->address == record.address && read->members == record.members,
          "what was written is a record, whatever a driver is called", text);
  // Every change of the file breaks its checksum.
  std::string changed = RecordToText(record);
  changed[text.size() % changed.size()] ^= 1;
  const absl::StatusOr<Record> broken = ParseRecord(changed);
  Require(!broken.ok() || *broken == *read, "a changed file is no other record", changed);
}

}  // namespace
}  // namespace vfio_agent

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vfio_agent::Check(vfio_agent::Text(data, size));
  vfio_agent::CheckWritten(vfio_agent::Text(data, size));
  return 0;
}
