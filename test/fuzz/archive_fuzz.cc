// UnpackArchive: whatever the archive, nothing is made outside of its directory, nothing odd
// inside, and no more than the limits allow.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "agent/snapshot/archive.h"
#include "test/fuzz/require.h"
#include "test/fuzz/scratch.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

constexpr ArchiveLimits kLimits = {
    .entries = 64, .file_bytes = size_t{64} * 1024, .total_bytes = size_t{128} * 1024};

std::string Slurp(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void Write(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary)
      .write(text.data(), static_cast<std::streamsize>(text.size()));
}

void CheckInside(const fs::path& place) {
  size_t total = 0;
  for (const auto& entry : fs::recursive_directory_iterator(place)) {
    const std::string path = entry.path().string();
    struct stat facts = {};
    Require(::lstat(path.c_str(), &facts) == 0, "what was made is there", path);
    Require(S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode) || S_ISLNK(facts.st_mode),
            "files, directories and links alone are made", path);
    Require(!S_ISREG(facts.st_mode) || facts.st_nlink == 1, "no file has two names", path);
    Require((facts.st_mode & (S_ISUID | S_ISGID)) == 0, "no file has more rights", path);
    if (S_ISREG(facts.st_mode)) total += static_cast<size_t>(facts.st_size);
  }
  Require(total <= kLimits.total_bytes, "no more than the limit is written");
}

void Check(std::string_view bytes) {
  const fs::path root = FreshRoot();
  const fs::path place = root / "in", again = root / "again";
  fs::create_directory(place);
  fs::create_directory(again);
  Write(root / "archive", bytes);
  Write(root / "secret", "untouched");
  const absl::Status status = UnpackArchive((root / "archive").string(), place.string(), kLimits);
  Require(status.ok() || !status.message().empty(), "an error says what is wrong");
  CheckInside(place);
  Require(Slurp(root / "secret") == "untouched", "nothing beside the directory is changed");
  Require(std::distance(fs::directory_iterator(root), fs::directory_iterator()) == 4,
          "nothing beside the directory is made");
  const absl::Status same = UnpackArchive((root / "archive").string(), again.string(), kLimits);
  Require(same.code() == status.code(), "the same archive gives the same answer",
          status.ToString());
}

}  // namespace
}  // namespace vfio_agent

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vfio_agent::Check(vfio_agent::Text(data, size));
  return 0;
}
