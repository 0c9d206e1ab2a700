#include "test/privileges/pod_seccomp.h"

#include <sched.h>
#include <seccomp.h>

#include <cerrno>

#include "test/privileges/pod_mounts.h"

namespace vfio_agent {
namespace {

// Seen under strace on a simulated node and in the virtual machine, those of libc and the loader
// included; a call that is missing here fails a test.
constexpr const char* kAllowed[] = {
    // memory, threads, signals, time
    "arch_prctl", "brk", "clock_gettime", "clock_nanosleep", "exit", "exit_group", "futex",
    "getrandom", "gettimeofday", "madvise", "mmap", "mprotect", "mremap", "munmap", "prlimit64",
    "restart_syscall", "rseq", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigtimedwait",
    "sched_getaffinity", "sched_yield", "set_robust_list", "set_tid_address", "sigaltstack",
    "sysinfo", "tgkill", "uname",
    // processes: itself, and the children that write
    "capget", "capset", "execve", "getegid", "geteuid", "getgid", "getpid", "getppid", "gettid",
    "getuid", "kill", "prctl", "setpgid", "wait4",
    // files
    "access", "close", "close_range", "dup", "faccessat2", "fchmod", "fcntl", "flock", "fstat",
    "fstatfs", "fsync", "ftruncate", "getdents64", "ioctl", "lseek", "lstat", "mkdir", "newfstatat",
    "open", "openat", "openat2", "pread64", "pwrite64", "read", "readlink", "readlinkat", "readv",
    "rename", "stat", "statx", "unlink", "write", "writev",
    // waiting, and sockets
    "accept4", "bind", "connect", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_wait",
    "eventfd2", "getpeername", "getsockname", "getsockopt", "inotify_add_watch", "inotify_init1",
    "listen", "pipe2", "poll", "ppoll", "recvfrom", "recvmsg", "sendmsg", "sendto", "setsockopt",
    "shutdown", "socket", "socketpair"};

// docs.docker.com, "Seccomp security profiles", and io_uring, which containerd 2.0 took out.
constexpr const char* kBlocked[] = {"acct",
                                    "add_key",
                                    "bpf",
                                    "clock_adjtime",
                                    "clock_settime",
                                    "create_module",
                                    "delete_module",
                                    "finit_module",
                                    "fsconfig",
                                    "fsmount",
                                    "fsopen",
                                    "fspick",
                                    "get_kernel_syms",
                                    "get_mempolicy",
                                    "init_module",
                                    "io_uring_enter",
                                    "io_uring_register",
                                    "io_uring_setup",
                                    "ioperm",
                                    "iopl",
                                    "kcmp",
                                    "kexec_file_load",
                                    "kexec_load",
                                    "keyctl",
                                    "lookup_dcookie",
                                    "mbind",
                                    "mount",
                                    "mount_setattr",
                                    "move_mount",
                                    "move_pages",
                                    "nfsservctl",
                                    "open_by_handle_at",
                                    "open_tree",
                                    "perf_event_open",
                                    "personality",
                                    "pivot_root",
                                    "process_vm_readv",
                                    "process_vm_writev",
                                    "ptrace",
                                    "query_module",
                                    "quotactl",
                                    "reboot",
                                    "request_key",
                                    "set_mempolicy",
                                    "setns",
                                    "settimeofday",
                                    "stime",
                                    "swapoff",
                                    "swapon",
                                    "sysfs",
                                    "_sysctl",
                                    "umount",
                                    "umount2",
                                    "unshare",
                                    "uselib",
                                    "userfaultfd",
                                    "ustat",
                                    "vm86",
                                    "vm86old"};

void Check(int result, const char* what) {
  if (result >= 0) return;
  errno = -result;
  Die(what);
}

void Allow(scmp_filter_ctx filter, const char* name) {
  const int call = ::seccomp_syscall_resolve_name(name);
  if (call == __NR_SCMP_ERROR) Check(-EINVAL, name);
  Check(::seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0), name);
}

}  // namespace

std::span<const char* const> AllowedCalls() { return kAllowed; }
std::span<const char* const> CallsThatRuntimesBlock() { return kBlocked; }

void InstallPodSeccomp(const PodSpec& spec) {
  const scmp_filter_ctx filter = ::seccomp_init(SCMP_ACT_ERRNO(EPERM));
  if (filter == nullptr) Check(-ENOMEM, "seccomp");
  for (const char* const name : kAllowed) Allow(filter, name);
  if (spec.capabilities.contains("SYS_MODULE")) {
    for (const char* const name : {"finit_module", "init_module"}) Allow(filter, name);
  }
  // Threads and children, but no namespaces. clone3 has its flags where a filter cannot see them:
  // ENOSYS makes libc use clone.
  constexpr scmp_datum_t kNamespaces = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                       CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP;
  Check(::seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                           SCMP_A0(SCMP_CMP_MASKED_EQ, kNamespaces, 0)),
        "clone");
  Check(::seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0), "clone3");
  Check(::seccomp_load(filter), "load the seccomp filter");
  ::seccomp_release(filter);
}

}  // namespace vfio_agent
