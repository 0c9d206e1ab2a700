#define FUSE_USE_VERSION 312
#include "test/sim/fuse_front.h"

#include <fuse3/fuse_lowlevel.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>

#include "absl/strings/str_format.h"
#include "test/sim/inodes.h"
#include "test/sim/killed.h"
#include "test/sim/open_files.h"
#include "test/sim/stopper.h"

namespace vfio_agent::sim {
namespace {

constexpr char kControl[] = ".control";
constexpr char kLog[] = ".log";

struct Front {
  Kernel& kernel;
  Inodes inodes;
  OpenFiles open_files;
};

Front& FrontOf(fuse_req_t request) { return *static_cast<Front*>(fuse_req_userdata(request)); }

std::shared_ptr<OpenFile> FileOf(fuse_req_t request, const fuse_file_info* info) {
  return FrontOf(request).open_files.Find(info->fh);
}

Caller CallerOf(fuse_req_t request) {
  const pid_t thread = fuse_req_ctx(request)->pid;
  return {.killed = [request, thread] {
    return fuse_req_interrupted(request) != 0 && SigkillPending(thread);
  }};
}

std::optional<Node> StatPath(Front& front, const std::string& path) {
  if (path == kControl) return Node{.kind = NodeKind::kFile, .mode = 0600, .size = 0};
  if (path == kLog) return Node{.kind = NodeKind::kFile, .mode = 0444, .size = 0};
  return front.kernel.Stat(path);
}

struct stat ToStat(const Node& node, fuse_ino_t number) {
  struct stat out {};
  const mode_t type = node.kind == NodeKind::kDirectory         ? S_IFDIR
                      : node.kind == NodeKind::kLink            ? S_IFLNK
                      : node.kind == NodeKind::kCharacterDevice ? S_IFCHR
                                                                : S_IFREG;
  out.st_ino = number;
  out.st_mode = type | node.mode;
  out.st_nlink = 1;
  out.st_size = node.kind == NodeKind::kDirectory ? 0 : node.size;
  out.st_rdev = node.device_number;
  return out;
}

// All timeouts stay 0: a change in the tree shows at the next system call.
void LookUp(fuse_req_t request, fuse_ino_t parent, const char* name) {
  Front& front = FrontOf(request);
  const auto above = front.inodes.PathOf(parent);
  if (!above) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  const std::string path = above->empty() ? name : *above + "/" + name;
  const auto node = StatPath(front, path);
  if (!node) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  // Config space is writable but acts on nothing here; as in sysfs, its inode is one and the same.
  const bool acts = node->kind == NodeKind::kFile && (node->mode & 0222) != 0 &&
                    std::string_view(name) != "config";
  fuse_entry_param entry{};
  entry.ino = front.inodes.LookUp(path, acts);
  entry.attr = ToStat(*node, entry.ino);
  if (fuse_reply_entry(request, &entry) == -ENOENT) front.inodes.Forget(entry.ino, 1);
}

void Forget(fuse_req_t request, fuse_ino_t number, uint64_t times) {
  FrontOf(request).inodes.Forget(number, times);
  fuse_reply_none(request);
}

void GetAttributes(fuse_req_t request, fuse_ino_t number, fuse_file_info*) {
  Front& front = FrontOf(request);
  const auto path = front.inodes.PathOf(number);
  const auto node = path ? StatPath(front, *path) : std::nullopt;
  if (!node) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  const struct stat attributes = ToStat(*node, number);
  fuse_reply_attr(request, &attributes, 0);
}

// A shell's ">" truncates before it writes; an attribute has nothing to truncate.
void SetAttributes(fuse_req_t request, fuse_ino_t number, struct stat*, int, fuse_file_info* info) {
  GetAttributes(request, number, info);
}

void ReadLink(fuse_req_t request, fuse_ino_t number) {
  Front& front = FrontOf(request);
  const auto path = front.inodes.PathOf(number);
  const Shown target = path ? front.kernel.ReadLink(*path) : Shown{.error = ENOENT};
  if (target.error != 0) {
    fuse_reply_err(request, target.error);
  } else {
    fuse_reply_readlink(request, target.text.c_str());
  }
}

void Open(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
  Front& front = FrontOf(request);
  const auto path = front.inodes.PathOf(number);
  const auto node = path ? StatPath(front, *path) : std::nullopt;
  if (!node) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  // sysfs refuses these to root as well.
  const int access = info->flags & O_ACCMODE;
  const bool reads = access != O_WRONLY;
  const bool writes = access != O_RDONLY;
  if ((reads && (node->mode & 0444) == 0) || (writes && (node->mode & 0222) == 0)) {
    fuse_reply_err(request, EACCES);
    return;
  }
  info->direct_io = 1;
  info->fh = front.open_files.Open(*path);
  if (fuse_reply_open(request, info) != 0) front.open_files.Close(info->fh);
}

void Release(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
  FrontOf(request).open_files.Close(info->fh);
  fuse_reply_err(request, 0);
}

// An open attribute whose device has gone meanwhile answers ENODEV.
int AfterOpen(int error) { return error == ENOENT ? ENODEV : error; }

// The part of the text that a read at `offset` gets.
Shown ReadPart(OpenFile& file, Kernel& kernel, off_t offset, size_t size, const Caller& caller) {
  const std::lock_guard<std::mutex> lock(file.mutex);
  if (offset == 0) {
    Shown shown;
    if (file.path == kLog) {
      shown.text = kernel.Log();
    } else if (file.path != kControl) {
      shown = kernel.Read(file.path, caller);
    }
    if (shown.error != 0) return shown;
    file.text = std::move(shown.text);
  }
  const size_t begin = std::min(static_cast<size_t>(offset), file.text.size());
  return {.error = 0, .text = file.text.substr(begin, size)};
}

void Read(fuse_req_t request, fuse_ino_t, size_t size, off_t offset, fuse_file_info* info) {
  const Shown part =
      ReadPart(*FileOf(request, info), FrontOf(request).kernel, offset, size, CallerOf(request));
  if (part.error != 0) {
    fuse_reply_err(request, AfterOpen(part.error));
  } else {
    fuse_reply_buf(request, part.text.data(), part.text.size());
  }
}

int RunCommands(Kernel& kernel, std::string_view lines) {
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    if (end > 0) {
      if (const int error = kernel.Control(lines.substr(0, end))) return error;
    }
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return 0;
}

// NOLINTNEXTLINE(readability-function-size): the parameters are libfuse's.
void Write(fuse_req_t request, fuse_ino_t, const char* text, size_t size, off_t,
           fuse_file_info* info) {
  const std::string path = FileOf(request, info)->path;
  Kernel& kernel = FrontOf(request).kernel;
  const std::string_view written(text, size);
  const int error = path == kControl ? RunCommands(kernel, written)
                                     : kernel.Write(path, written, CallerOf(request));
  if (error != 0) {
    fuse_reply_err(request, AfterOpen(error));
  } else {
    fuse_reply_write(request, size);
  }
  if (kernel.quit_asked()) Stopper::AskToStop();
}

void ReadDirectory(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset,
                   fuse_file_info*) {
  Front& front = FrontOf(request);
  const auto path = front.inodes.PathOf(number);
  if (!path) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  std::vector<std::string> names = {".", ".."};
  for (std::string& name : front.kernel.List(*path)) names.push_back(std::move(name));
  std::string out(size, '\0');
  size_t used = 0;
  for (auto i = static_cast<size_t>(offset); i < names.size(); ++i) {
    const std::string below = path->empty() ? names[i] : *path + "/" + names[i];
    const auto node = i < 2 ? Node{} : front.kernel.Stat(below).value_or(Node{});
    const struct stat attributes = ToStat(node, Inodes::kRoot + 1);
    const size_t needed =
        fuse_add_direntry(request, out.data() + used, size - used, names[i].c_str(), &attributes,
                          static_cast<off_t>(i + 1));
    if (needed > size - used) break;
    used += needed;
  }
  fuse_reply_buf(request, out.data(), used);
}

void RefuseCreate(fuse_req_t request, fuse_ino_t, const char*, mode_t, fuse_file_info*) {
  fuse_reply_err(request, EACCES);
}
void RefuseMakeNode(fuse_req_t request, fuse_ino_t, const char*, mode_t, dev_t) {
  fuse_reply_err(request, EACCES);
}
void RefuseMakeDirectory(fuse_req_t request, fuse_ino_t, const char*, mode_t) {
  fuse_reply_err(request, EPERM);
}
void RefuseRemoval(fuse_req_t request, fuse_ino_t, const char*) { fuse_reply_err(request, EPERM); }

fuse_lowlevel_ops Operations() {
  fuse_lowlevel_ops operations{};
  operations.lookup = LookUp;
  operations.forget = Forget;
  operations.getattr = GetAttributes;
  operations.setattr = SetAttributes;
  operations.readlink = ReadLink;
  operations.open = Open;
  operations.release = Release;
  operations.read = Read;
  operations.write = Write;
  operations.readdir = ReadDirectory;
  operations.create = RefuseCreate;
  operations.mknod = RefuseMakeNode;
  operations.mkdir = RefuseMakeDirectory;
  operations.unlink = RefuseRemoval;
  operations.rmdir = RefuseRemoval;
  return operations;
}

}  // namespace

absl::Status Serve(Kernel& kernel, const ServeOptions& options) {
  Front front{.kernel = kernel, .inodes = {}, .open_files = {}};
  const fuse_lowlevel_ops operations = Operations();
  // auto_unmount: a watcher of libfuse's unmounts even if this process is killed.
  char name[] = "sim-node";
  char option[] = "-oauto_unmount,allow_other,fsname=sim-node,subtype=sim-node";
  char* arguments[] = {name, option, nullptr};
  fuse_args args = FUSE_ARGS_INIT(2, arguments);
  Stopper stopper(options.exit_on_eof);
  const std::unique_ptr<fuse_session, void (*)(fuse_session*)> session(
      fuse_session_new(&args, &operations, sizeof operations, &front), fuse_session_destroy);
  fuse_opt_free_args(&args);  // libfuse made a copy of ours
  if (session == nullptr) return absl::InternalError("libfuse made no session");
  if (fuse_session_mount(session.get(), options.mount_point.c_str()) != 0) {
    return absl::InternalError(absl::StrFormat("cannot mount at %s", options.mount_point));
  }
  stopper.Start([&] {
    kernel.ShutDown();
    fuse_session_exit(session.get());
  });
  // Each blocked reader or writer takes up one thread for as long as it blocks.
  constexpr unsigned kMaxThreads = 512;
  const std::unique_ptr<fuse_loop_config, void (*)(fuse_loop_config*)> config(
      fuse_loop_cfg_create(), fuse_loop_cfg_destroy);
  fuse_loop_cfg_set_max_threads(config.get(), kMaxThreads);
  options.mounted();
  const int error = fuse_session_loop_mt(session.get(), config.get());
  stopper.Finish();
  fuse_session_unmount(session.get());
  // A signal that ends the loop shows up as a positive number.
  if (error >= 0) return absl::OkStatus();
  return absl::ErrnoToStatus(-error, "serving " + options.mount_point);
}

}  // namespace vfio_agent::sim
