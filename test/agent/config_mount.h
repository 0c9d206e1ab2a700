// A directory as the kubelet mounts a ConfigMap into it, and changes it.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace vfio_agent {

// config.yaml -> ..data/config.yaml, ..data -> ..<n>/: a change makes a new ..<n> and renames a
// link over ..data, so that nothing happens to the file itself or to its own link.
class ConfigMount {
 public:
  ConfigMount(std::filesystem::path dir, const std::string& text) : dir_(std::move(dir)) {
    std::filesystem::create_directories(dir_);
    Put(text);
    std::filesystem::create_symlink("..data/config.yaml", dir_ / "config.yaml");
  }

  std::string file() const { return dir_ / "config.yaml"; }

  void Put(const std::string& text) {
    const std::string old = fresh_;
    fresh_ = "..2026_11_30_" + std::to_string(++count_);
    std::filesystem::create_directory(dir_ / fresh_);
    std::ofstream(dir_ / fresh_ / "config.yaml") << text;
    std::filesystem::create_symlink(fresh_, dir_ / "..data_tmp");
    std::filesystem::rename(dir_ / "..data_tmp", dir_ / "..data");
    if (!old.empty()) std::filesystem::remove_all(dir_ / old);
  }

 private:
  const std::filesystem::path dir_;
  std::string fresh_;
  int count_ = 0;
};

}  // namespace vfio_agent
