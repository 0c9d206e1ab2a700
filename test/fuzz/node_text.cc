#include "test/fuzz/node_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "sysfs/fd.h"
#include "sysfs/watch.h"
#include "test/fuzz/require.h"

namespace vfio_agent {
namespace {

constexpr int kMostEntries = 1000;
constexpr size_t kLargestSparse = 4096;
constexpr int kDirectory = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// Cuts `text` at the first `mark`: what is before it is returned, what is behind it stays.
std::string_view Cut(std::string_view& text, char mark) {
  const size_t at = text.find(mark);
  const std::string_view head = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return head;
}

size_t ParseNumber(std::string_view text, int base) {
  size_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, base);
  return number;
}

bool IsName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find('\0') == std::string_view::npos && name.find('/') == std::string_view::npos;
}

// The directory `name` in `dir`, made where it is missing; invalid for a link or a file.
Fd OpenDir(const Fd& dir, std::string_view name) {
  if (!IsName(name) || !dir.valid()) return {};
  const std::string text(name);
  ::mkdirat(dir.get(), text.c_str(), 0755);  // what is there already shows when it is opened
  return Fd(::openat(dir.get(), text.c_str(), kDirectory));
}

// Walks down `path` from `dir`. Component by component, since no link may be followed.
Fd OpenDirs(const Fd& dir, std::string_view path) {
  Fd at(::openat(dir.get(), ".", kDirectory));
  while (!path.empty()) at = OpenDir(at, Cut(path, '/'));
  return at;
}

class Maker {
 public:
  explicit Maker(const std::string& root) : root_(::open(root.c_str(), kDirectory)) {
    Require(root_.valid(), "the root can be opened", root);
  }

  void AddLine(std::string_view line) {
    if (line.starts_with('@')) {
      AddDevice(line.substr(1));
    } else if (line.starts_with('/')) {
      AddEntry(root_, line.substr(1));
    } else if (device_.valid()) {
      AddEntry(device_, line);
    }
  }

 private:
  // "0000:3b:00.0^0000:3a:01.0"
  void AddDevice(std::string_view line) {
    device_ = Fd();
    const std::string name(Cut(line, '^'));
    std::string above = "sys/devices/pci" + name.substr(0, name.rfind(':'));
    if (const auto parent = places_.find(std::string(line)); parent != places_.end()) {
      above = parent->second;
    }
    const std::string place = above + "/" + name;
    if (!IsName(name)) return;
    device_ = OpenDirs(root_, place);
    places_[name] = place;
    const Fd list = OpenDirs(root_, "sys/bus/pci/devices");
    PutLink(list, name, "../../../../" + place);
  }

  static void AddEntry(const Fd& dir, std::string_view line) {
    const size_t at = line.find_first_of("=>#");
    std::string_view path = line.substr(0, at);
    const size_t slash = path.rfind('/');
    const Fd parent =
        OpenDirs(dir, slash == std::string_view::npos ? std::string_view() : path.substr(0, slash));
    const std::string name(path.substr(slash + 1));
    // That one would say what the others are to be like.
    if (!IsName(name) || !parent.valid() || name == kReplayFile) return;
    if (at == std::string_view::npos) {
      OpenDir(parent, name);
      return;
    }
    std::string value(line.substr(at + 1));
    if (line[at] == '>') return PutLink(parent, name, value);
    std::ranges::replace(value, '|', '\n');
    PutFile(parent, name, line[at] == '#' ? SparseBytes(value) : value);
  }

  static void PutLink(const Fd& dir, const std::string& name, const std::string& target) {
    // Fails where the name is taken or the target is empty or too long: then there is none.
    if (::symlinkat(target.c_str(), dir.get(), name.c_str()) != 0) return;
  }

  static void PutFile(const Fd& dir, const std::string& name, const std::string& bytes) {
    const Fd file(::openat(dir.get(), name.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (!file.valid()) return;
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    Require(written == static_cast<ssize_t>(bytes.size()), "the temporary directory takes a file");
  }

  Fd root_;
  Fd device_;  // the last device's directory
  std::map<std::string, std::string> places_;
};

}  // namespace

std::string SparseBytes(std::string_view text) {
  std::string bytes(std::min(ParseNumber(Cut(text, ' '), 10), kLargestSparse), '\0');
  while (!text.empty()) {
    std::string_view values = Cut(text, ' ');
    for (size_t at = ParseNumber(Cut(values, '='), 16); values.size() >= 2 && at < bytes.size();
         ++at) {
      bytes[at] = static_cast<char>(ParseNumber(values.substr(0, 2), 16));
      values.remove_prefix(2);
    }
  }
  return bytes;
}

void MakeNode(std::string_view text, const std::string& root) {
  Maker maker(root);
  for (int i = 0; i < kMostEntries && !text.empty(); ++i) maker.AddLine(Cut(text, '\n'));
}

}  // namespace vfio_agent
