// ObjectWatch: keeps a picture of the objects of one collection true, by a list, of several pages
// where it is long, and then watches, each from where the last one ended. A state machine: it is
// told answers, lines and the time, and tells what is to be asked next and when.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/cluster/api_answer.h"
#include "agent/cluster/api_json.h"
#include "agent/cluster/retry.h"

namespace vfio_agent {

// One line of a watch.
struct WatchLine {
  enum class Kind { kSet, kGone, kBookmark, kError };
  Kind kind = Kind::kSet;
  ApiJson object;
  std::string version;  // not of an error
  int code = 0;         // of an error only
};

// DataLoss for what is none.
absl::StatusOr<WatchLine> ParseWatchLine(std::string_view line);

struct WatchNews {
  enum class Kind {
    kAll,   // there are these objects and no others
    kSet,   // this one is new or another than before
    kGone,  // this one is no more
  };
  Kind kind = Kind::kAll;
  std::vector<ApiJson> objects;
};

class ObjectWatch {
 public:
  enum class Wants { kList, kWatch };

  // `page`: how many objects of a list to ask for at once; 0: for all.
  explicit ObjectWatch(Retry::Limits limits, int page = 0)
      : limits_(limits), retry_(limits), page_(page) {}

  // What to ask for, not before due(). Nothing while an answer is awaited.
  Wants wants() const { return wants_; }
  absl::Time due() const { return due_; }
  // The query of the list to be asked for: `selector`, how many objects, and behind which.
  std::string ListQuery(const std::string& selector) const;
  // From where to watch.
  const std::string& version() const { return version_; }

  // A request has been sent; exactly one of OnList and OnEnd follows, or none where OnLine said so.
  void OnSent(absl::Time now);
  void OnList(const ApiAnswer& answer, absl::Time now);
  // As the transport tells lines: an empty one goes first. False: the watch is to be given up,
  // without an OnEnd.
  bool OnLine(std::string_view line, absl::Time now);
  void OnEnd(const ApiAnswer& answer, absl::Time now);

  // OK once there was a list and nothing has failed since.
  const absl::Status& status() const { return status_; }
  std::vector<WatchNews> TakeNews() { return std::exchange(news_, {}); }

 private:
  void Failed(const ApiAnswer& answer, Wants next, absl::Time now);
  bool OnError(const WatchLine& line, absl::Time now);
  absl::Status TakePage(const std::string& body);

  // What has come of a list so far.
  struct Pages {
    std::string version;
    std::vector<ApiJson> objects;
    std::string next;  // the server's word for where it goes on; empty: that is all
    int count = 0;
    size_t bytes = 0;
  };

  Retry::Limits limits_;
  Retry retry_;
  int page_;
  Pages pages_;
  Wants wants_ = Wants::kList;
  absl::Time due_ = absl::InfinitePast();
  absl::Time sent_ = absl::InfinitePast();
  std::string version_;
  absl::Status status_ = absl::UnavailableError("not asked yet");
  std::vector<WatchNews> news_;
};

}  // namespace vfio_agent
