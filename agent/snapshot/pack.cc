#include <archive.h>
#include <archive_entry.h>

#include <memory>

#include "absl/strings/str_format.h"
#include "agent/snapshot/archive.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

using Writer = std::unique_ptr<archive, int (*)(archive*)>;
using Header = std::unique_ptr<archive_entry, void (*)(archive_entry*)>;

absl::Status ErrorOf(archive* writer, const char* what) {
  const char* const why = ::archive_error_string(writer);
  return absl::InternalError(absl::StrFormat("%s: %s", what, why == nullptr ? "failed" : why));
}

la_ssize_t Append(archive* /*writer*/, void* text, const void* bytes, size_t size) {
  static_cast<std::string*>(text)->append(static_cast<const char*>(bytes), size);
  return static_cast<la_ssize_t>(size);
}

// GNU's form has names and targets of any length, and no times beside the one that is set. The
// compressor would note when it ran.
absl::Status Open(archive* writer, std::string& text) {
  if (::archive_write_set_format_gnutar(writer) != ARCHIVE_OK ||
      ::archive_write_add_filter_gzip(writer) != ARCHIVE_OK ||
      ::archive_write_set_filter_option(writer, "gzip", "timestamp", nullptr) != ARCHIVE_OK ||
      ::archive_write_set_bytes_in_last_block(writer, 1) != ARCHIVE_OK ||
      ::archive_write_open(writer, &text, nullptr, Append, nullptr) != ARCHIVE_OK) {
    return ErrorOf(writer, "begin the archive");
  }
  return absl::OkStatus();
}

void Describe(const std::string& path, const Item& item, archive_entry* entry) {
  ::archive_entry_clear(entry);
  ::archive_entry_set_pathname(entry, path.c_str());
  ::archive_entry_set_uid(entry, 0);
  ::archive_entry_set_gid(entry, 0);
  ::archive_entry_set_mtime(entry, 0, 0);
  switch (item.kind) {
    case ItemKind::kDirectory:
      ::archive_entry_set_filetype(entry, AE_IFDIR);
      ::archive_entry_set_perm(entry, 0755);
      break;
    case ItemKind::kLink:
      ::archive_entry_set_filetype(entry, AE_IFLNK);
      ::archive_entry_set_perm(entry, 0777);
      ::archive_entry_set_symlink(entry, item.text.c_str());
      break;
    default:
      ::archive_entry_set_filetype(entry, AE_IFREG);
      ::archive_entry_set_perm(entry, 0644);
      ::archive_entry_set_size(entry, static_cast<la_int64_t>(item.text.size()));
  }
}

absl::Status Put(archive* writer, archive_entry* entry, const std::string& path, const Item& item) {
  Describe(path, item, entry);
  const bool file = item.kind == ItemKind::kFile || item.kind == ItemKind::kNamed;
  const auto size = static_cast<la_ssize_t>(item.text.size());
  if (::archive_write_header(writer, entry) != ARCHIVE_OK ||
      (file && ::archive_write_data(writer, item.text.data(), item.text.size()) != size)) {
    return ErrorOf(writer, path.c_str());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> PackItems(const std::map<std::string, Item>& items) {
  std::string text;
  const Writer writer(::archive_write_new(), ::archive_write_free);
  const Header entry(::archive_entry_new(), ::archive_entry_free);
  if (writer == nullptr || entry == nullptr) return absl::ResourceExhaustedError("no memory");
  RETURN_IF_ERROR(Open(writer.get(), text));
  for (const auto& [path, item] : items) {
    RETURN_IF_ERROR(Put(writer.get(), entry.get(), path, item));
  }
  if (::archive_write_close(writer.get()) != ARCHIVE_OK) {
    return ErrorOf(writer.get(), "end the archive");
  }
  return text;
}

}  // namespace vfio_agent
