// SliceWriter: which request about our ResourceSlices is to be made next, and when. It is told what
// is wanted, what the watch shows, answers and the time.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agent/cluster/object_watch.h"
#include "agent/cluster/retry.h"
#include "agent/dra/slice_plan.h"

namespace vfio_agent {

struct SliceCall {
  enum class Kind { kReadNode, kApply, kRemove };
  Kind kind = Kind::kReadNode;
  std::string name;  // of the slice
  Json document;     // to be applied
};

class SliceWriter {
 public:
  struct Options {
    std::string driver;
    std::string node;
    Retry::Limits limits;
    absl::Duration pause = absl::Seconds(1);  // between two rounds of ours
  };
  explicit SliceWriter(Options options) : options_(std::move(options)), retry_(options_.limits) {}

  void Want(std::vector<DraDevice> devices) { wanted_ = std::move(devices); }
  // What the watch shows, of whatever driver and node.
  void Saw(const WatchNews& news);

  // The request to make now. One at a time: OnAnswer follows.
  std::optional<SliceCall> Next(absl::Time now);
  void OnAnswer(const ApiAnswer& answer, absl::Time now);
  // When to call Next() again; infinite while an answer is awaited.
  absl::Time due() const;

  // What is wanted stands there, as far as is known.
  bool written() const;
  // Any slice of ours stands there, as far as is known.
  bool some() const { return !seen_.empty(); }
  // OK, or why the last request failed.
  const absl::Status& status() const { return status_; }

 private:
  struct Known {
    SeenSlice slice;
    std::string version;
  };

  SlicePlan Plan() const;
  bool IsOurs(const ApiJson& object) const;
  void Note(const ApiJson& object);
  void Forget(const ApiJson& object);
  void Answered(const SliceCall& call, const ApiAnswer& answer);
  void Begin();

  const Options options_;
  Retry retry_;
  std::optional<std::vector<DraDevice>> wanted_;
  bool listed_ = false;
  std::map<std::string, Known> seen_;  // ours, by name
  // Versions of those that were removed: the answer to our own request may come after the watch has
  // told of its end.
  std::map<std::string, std::string> gone_;
  std::string node_uid_;
  int64_t generation_ = 0;  // written last
  bool round_ = false;      // the Node was read, and the calls follow from it
  std::deque<SliceCall> calls_;
  std::optional<SliceCall> underway_;
  absl::Time not_before_ = absl::InfinitePast();
  absl::Status status_;
};

}  // namespace vfio_agent
