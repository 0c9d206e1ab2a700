#include "test/fuzz/scratch.h"

#include <cstdlib>
#include <filesystem>

#include "test/fuzz/require.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "vfa-fuzz-XXXXXX").string();
    Require(::mkdtemp(name.data()) != nullptr, "a temporary directory can be made", name);
    path_ = name;
  }
  ~Scratch() {
    std::error_code error;  // nobody is left to hear of it
    fs::remove_all(path_, error);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

std::string FreshRoot() {
  static const Scratch scratch;
  const fs::path root = scratch.path() / "root";
  fs::remove_all(root);
  fs::create_directory(root);
  return root.string();
}

}  // namespace vfio_agent
