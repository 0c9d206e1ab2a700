#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "absl/strings/str_format.h"
#include "agent/commands/commands.h"
#include "agent/exit_code.h"
#include "agent/snapshot/additions.h"
#include "agent/snapshot/archive.h"
#include "agent/snapshot/snapshot.h"
#include "agent/snapshot/take.h"
#include "agent/snapshot/write_file.h"
#include "agent/text/terminal.h"
#include "sysfs/paths.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr char kToStandardOutput[] = "-";
constexpr size_t kShownFailures = 12;
constexpr size_t kShownReads = 64;  // one of so many: they are quicker than a terminal

// How many entries a directory has.
size_t CountBelow(const std::map<std::string, Item>& items, const std::string& dir) {
  return static_cast<size_t>(std::ranges::count_if(items, [&dir](const auto& item) {
    return item.first.starts_with(dir + "/") &&
           item.first.find('/', dir.size() + 1) == std::string::npos;
  }));
}

struct Made {
  Snapshot snapshot;
  std::string bytes;
};

absl::StatusOr<Made> Make(const Session& session) {
  absl::StatusOr<Taken> taken = absl::UnknownError("not taken");
  {
    ProgressLine line;
    size_t reads = 0;
    const Progress show = [&line, &reads](const std::string& what) {
      if (reads++ % kShownReads == 0) line.Show("reading " + Printable(what));
    };
    taken = TakeRecording(session.tree(), FactsToTake(), line.visible() ? show : nullptr);
  }
  if (!taken.ok()) return taken.status();
  if (!taken->recording.items.contains(kDevicesDir)) {
    return absl::FailedPreconditionError(
        absl::StrFormat("no PCI devices to read below %s", session.tree().root()));
  }
  std::vector<std::string>& unfinished = taken->unfinished;
  const Additions additions = TakeAdditions(session, taken->recording, unfinished);
  Made made{.snapshot = MakeSnapshot(std::move(taken->recording), additions, unfinished)};
  ASSIGN_OR_RETURN(made.bytes, PackItems(made.snapshot.items));
  return made;
}

std::string FailuresText(const Json& about) {
  std::string text;
  const Json& failures = about.at("not_read");
  size_t left = failures.size();
  for (const Json& failure : failures) {
    if (left + kShownFailures == failures.size()) {
      text += absl::StrFormat("not read: and %d more, see %s\n", left, kAboutFile);
      break;
    }
    text +=
        absl::StrFormat("not read: %s: %s\n", Printable(failure.at("path").get<std::string>(), 200),
                        Printable(failure.at("why").get<std::string>(), 200));
    --left;
  }
  for (const Json& hidden : about.at("not_seen")) {
    text += absl::StrFormat("not seen: all %s (hostPID, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH)\n",
                            hidden.get<std::string>());
  }
  for (const Json& fact : about.at("unfinished")) {
    text += absl::StrFormat("not taken: %s\n", Printable(fact.get<std::string>(), 300));
  }
  return text;
}

std::string Text(const std::string& file, const Made& made) {
  const std::map<std::string, Item>& items = made.snapshot.items;
  std::string text =
      absl::StrFormat("%s: %d PCI functions, %d files, %d bytes\n", file,
                      CountBelow(items, kDevicesDir), items.size(), made.bytes.size());
  for (const MaskCount& mask : made.snapshot.masked) {
    text += absl::StrFormat("masked in %d file%s: %s\n", mask.files, mask.files == 1 ? "" : "s",
                            mask.what);
  }
  text += FailuresText(made.snapshot.about);
  if (file != kToStandardOutput) {
    text += absl::StrFormat(
        "look at it:   tar xzOf %s | less\nask about it: vfio-agent plan "
        "--root %s\n",
        file, file);
  }
  return text;
}

Json Document(const std::string& file, const Made& made) {
  Json document = made.snapshot.about;
  document["file"] = file;
  document["bytes"] = made.bytes.size();
  document["functions"] = CountBelow(made.snapshot.items, kDevicesDir);
  document["masked"] = Json::array();
  for (const MaskCount& mask : made.snapshot.masked) {
    document["masked"].push_back({{"what", mask.what}, {"files", mask.files}});
  }
  return document;
}

// Standard output is the archive's then.
int PrintArchive(const Made& made) {
  std::cerr << Text(kToStandardOutput, made);
  std::cout.write(made.bytes.data(), static_cast<std::streamsize>(made.bytes.size()));
  return kExitDone;
}

}  // namespace

int SnapshotCommand(Session& session) {
  const Invocation& invocation = session.invocation();
  const std::string& file = invocation.arguments.front();
  const bool print = file == kToStandardOutput;
  if (print && IsTerminal(STDOUT_FILENO)) {
    PrintError("an archive is not for a terminal: name a file, or send it on");
    return kExitUsage;
  }
  // Before the long look, which would be for nothing.
  if (!print && !invocation.force && ::access(file.c_str(), F_OK) == 0) {
    PrintError(absl::StrFormat("%s is there already; --force replaces it", file));
    return kExitUsage;
  }
  const absl::StatusOr<Made> made = Make(session);
  absl::Status status = made.status();
  if (status.ok() && print) return PrintArchive(*made);
  if (status.ok()) status = WriteNewFile(file, made->bytes, invocation.force);
  if (!status.ok()) {
    PrintError(Message(status));
    return kExitFailed;
  }
  if (IsDocument(invocation.output)) {
    PrintDocument(Document(file, *made), invocation.output);
  } else {
    PrintText(Text(file, *made));
  }
  return kExitDone;
}

}  // namespace vfio_agent
