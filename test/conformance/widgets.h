// Widgets: the three devices of the faulty plugin, and what is wrong with it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "proto/deviceplugin_v1beta1.grpc.pb.h"

namespace vfio_agent::conformance {

// The faults that were asked for, by name; none: a plugin that keeps every rule.
class Faults {
 public:
  explicit Faults(std::set<std::string> names) : names_(std::move(names)) {}
  bool Has(const char* name) const { return names_.contains(name); }

 private:
  const std::set<std::string> names_;
};

struct Widget {
  std::string id;  // a PCI address
  int group = 0;
  bool healthy = true;
};

// What the service and the plugin's main loop have in common. Thread-safe.
class Widgets {
 public:
  explicit Widgets(const Faults& faults);

  // Devices with these ids are sick, the others are not.
  void SetSick(const std::set<std::string>& ids);
  void Rename(int life);  // ids of another life, of 65,536
  void Empty();           // there are none any more
  std::vector<Widget> all() const;
  v1beta1::ListAndWatchResponse List() const;

  enum class News { kNone, kChanged, kEnd };
  // Waits for a while for something newer than `version`, and sets it.
  News Wait(int& version);
  // Streams end until they may open again.
  void EndStreams(bool end);

  void SetRegistering(bool under_way);
  void WaitWhileRegistering();

  // The number of streams before.
  int StreamOpened();
  void StreamClosed();
  int streams() const;
  int newest_stream() const;

 private:
  const Faults& faults_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Widget> widgets_;
  int version_ = 1;
  int streams_ = 0;
  int opened_ = 0;
  bool ending_ = false;
  bool registering_ = false;
};

}  // namespace vfio_agent::conformance
