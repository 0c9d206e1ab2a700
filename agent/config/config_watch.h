// ConfigWatch: notices that the configuration file has another text.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "sysfs/fd.h"

namespace vfio_agent {

// Watches the file's directory, not the file: an editor puts a new one in its place, and of a
// mounted ConfigMap the kubelet renames only the link "..data" that the file's own link leads
// through. A text counts once it has been the same for a moment, so that one that is half written
// does not; and once only, whatever came of it. What is no file, such as a pipe, never changes.
// Times come from outside. One thread.
class ConfigWatch {
 public:
  // `in_force`: the fingerprint of the text that was read at the start; nullopt: there was no file.
  ConfigWatch(std::string file, std::optional<size_t> in_force);

  // -1 where the kernel gives none: then only Look() notices.
  int fd() const { return inotify_.get(); }
  // When fd() is readable.
  void Drain(absl::Time now);
  // Looks without being told, as at each resync: for what no event of this directory tells (a link
  // that leads elsewhere, a directory that was made later).
  void Look(absl::Time now);

  // When Check() is to be called.
  absl::Time due() const { return due_; }
  // kEmpty: a text of nothing but blanks. It would mean the built-in defaults, and is what a file
  // is for a moment, or for good on a full disk, when it is written anew.
  enum class Found { kNothing, kNew, kEmpty, kGone, kUnreadable };
  Found Check(absl::Time now);

  // What was read last, with whatever success, is not new any more.
  void Tried();

 private:
  void Watch();
  // The text's fingerprint, or why there is none: an errno, 0 for a text that is no configuration.
  struct Seen {
    std::optional<size_t> text;
    int error = 0;
    bool empty = false;
    bool operator==(const Seen& other) const {  // `empty` follows from the text
      return text == other.text && error == other.error;
    }
  };
  void Note(const Seen& seen, absl::Time now);
  Seen Read() const;

  std::string file_;
  bool once_ = false;  // it is no file, a pipe say: its text can be read once, and was
  Fd inotify_;
  int watched_ = -1;  // inotify's number for the directory; -1: it is not there, or was replaced
  Seen tried_;
  Seen seen_;
  absl::Time due_ = absl::InfiniteFuture();
};

}  // namespace vfio_agent
