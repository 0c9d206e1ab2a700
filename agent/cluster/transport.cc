#include "agent/cluster/transport.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "agent/cluster/api_json.h"
#include "agent/cluster/curl_library.h"

namespace vfio_agent {
namespace {

constexpr int kOk = 200;
constexpr size_t kHeaderBytes = 65536;
constexpr long kKeepIdle = 30;
constexpr long kKeepInterval = 10;
constexpr absl::Duration kLongestRetryAfter = absl::Minutes(10);

long Milliseconds(absl::Duration duration) {
  return static_cast<long>(absl::ToInt64Milliseconds(std::max(duration, absl::ZeroDuration())));
}

absl::StatusCode CodeOf(CURLcode code) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return absl::StatusCode::kFailedPrecondition;
    case CURLE_OPERATION_TIMEDOUT:
      return absl::StatusCode::kDeadlineExceeded;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

}  // namespace

struct Transport::Curl {
  const CurlLibrary* functions = nullptr;
  CURLM* multi = nullptr;
};

struct Transport::Transfer {
  HttpsRequest request;
  OnDone on_done;
  OnLine on_line;
  HttpsAnswer answer;
  std::vector<std::string> lines;  // not told yet
  std::string rest;                // the beginning of a line
  size_t header_bytes = 0;
  bool too_large = false;
  bool done = false;
  const CurlLibrary* curl = nullptr;
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  std::array<char, CURL_ERROR_SIZE> words = {};

  int Code() const;
  size_t TakeHeader(std::string_view bytes);
  size_t TakeBody(std::string_view bytes);
  void TakeLines(std::string_view bytes);
  void SetUp();
  void SetUpTls();
  void End(CURLcode result);
};

namespace {

template <typename Transfer>
size_t OnBody(char* bytes, size_t size, size_t count, void* transfer) {
  return static_cast<Transfer*>(transfer)->TakeBody({bytes, size * count});
}

template <typename Transfer>
size_t OnHeader(char* bytes, size_t size, size_t count, void* transfer) {
  return static_cast<Transfer*>(transfer)->TakeHeader({bytes, size * count});
}

}  // namespace

int Transport::Transfer::Code() const {
  long code = 0;
  curl->easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
  return static_cast<int>(code);
}

// Here and below: fewer bytes than were given end the transfer. Without a bound a server could send
// headers for as long as a request may last.
size_t Transport::Transfer::TakeHeader(std::string_view bytes) {
  header_bytes += bytes.size();
  too_large = header_bytes > kHeaderBytes;
  if (on_line && bytes == "\r\n" && Code() == kOk) lines.emplace_back();
  return too_large ? 0 : bytes.size();
}

size_t Transport::Transfer::TakeBody(std::string_view bytes) {
  if (on_line && Code() == kOk) {
    TakeLines(bytes);
  } else {
    answer.body += bytes;
  }
  too_large = answer.body.size() > kApiBytes || rest.size() > kApiBytes;
  return too_large ? 0 : bytes.size();
}

void Transport::Transfer::TakeLines(std::string_view bytes) {
  for (size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    rest += bytes.substr(0, end);
    lines.push_back(std::exchange(rest, {}));
    bytes.remove_prefix(end + 1);
  }
  rest += bytes;
}

void Transport::Transfer::SetUp() {
  const auto set = curl->easy_setopt;
  set(easy, CURLOPT_URL, request.url.c_str());
  set(easy, CURLOPT_PROTOCOLS_STR, "https");
  set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (!request.body.empty()) {
    set(easy, CURLOPT_POSTFIELDS, request.body.c_str());
    set(easy, CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
  }
  for (const std::string& header : request.headers) {
    headers = curl->slist_append(headers, header.c_str());
  }
  set(easy, CURLOPT_HTTPHEADER, headers);
  set(easy, CURLOPT_NOSIGNAL, 1L);
  // The API server is reached directly, whatever proxy the environment has for other things.
  set(easy, CURLOPT_PROXY, "");
  set(easy, CURLOPT_NOPROXY, "*");
  set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  set(easy, CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(request.connect_limit));
  set(easy, CURLOPT_TIMEOUT_MS, Milliseconds(request.limit));
  // What has gone without a word is noticed while a watch has nothing to say.
  set(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  set(easy, CURLOPT_TCP_KEEPIDLE, kKeepIdle);
  set(easy, CURLOPT_TCP_KEEPINTVL, kKeepInterval);
  set(easy, CURLOPT_WRITEFUNCTION, &OnBody<Transfer>);
  set(easy, CURLOPT_WRITEDATA, this);
  set(easy, CURLOPT_HEADERFUNCTION, &OnHeader<Transfer>);
  set(easy, CURLOPT_HEADERDATA, this);
  set(easy, CURLOPT_ERRORBUFFER, words.data());
  set(easy, CURLOPT_PRIVATE, this);
}

void Transport::Transfer::SetUpTls() {
  const auto set = curl->easy_setopt;
  set(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(easy, CURLOPT_SSL_VERIFYPEER, 1L);
  set(easy, CURLOPT_SSL_VERIFYHOST, 2L);
  // The given CA instead of the system's, not besides them.
  set(easy, CURLOPT_CAINFO, nullptr);
  set(easy, CURLOPT_CAPATH, nullptr);
  curl_blob ca = {.data = request.ca.data(), .len = request.ca.size(), .flags = CURL_BLOB_NOCOPY};
  set(easy, CURLOPT_CAINFO_BLOB, &ca);
  // A resumed session is not verified again.
  set(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
}

void Transport::Transfer::End(CURLcode result) {
  done = true;
  answer.code = Code();
  curl_off_t seconds = 0;
  curl->easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds);
  answer.retry_after =
      std::min(absl::Seconds(std::max(seconds, curl_off_t{0})), kLongestRetryAfter);
  if (result == CURLE_OK) return;
  const char* const said = words[0] != '\0' ? words.data() : curl->easy_strerror(result);
  answer.status = too_large ? absl::OutOfRangeError("the answer is too large")
                            : absl::Status(CodeOf(result), said);
}

Transport::Transport(std::unique_ptr<Curl> curl) : curl_(std::move(curl)) {}

absl::StatusOr<std::unique_ptr<Transport>> Transport::Open() {
  const absl::StatusOr<const CurlLibrary*> functions = LoadCurl();
  if (!functions.ok()) return functions.status();
  auto curl = std::make_unique<Curl>(Curl{*functions, (*functions)->multi_init()});
  if (curl->multi == nullptr) return absl::UnavailableError("libcurl cannot begin");
  return std::unique_ptr<Transport>(new Transport(std::move(curl)));
}

Transport::~Transport() {
  CancelAll();
  curl_->functions->multi_cleanup(curl_->multi);
}

uint64_t Transport::Start(HttpsRequest request, OnDone on_done, OnLine on_line) {
  auto transfer = std::make_unique<Transfer>();
  transfer->request = std::move(request);
  transfer->on_done = std::move(on_done);
  transfer->on_line = std::move(on_line);
  transfer->curl = curl_->functions;
  transfer->easy = curl_->functions->easy_init();
  if (transfer->easy == nullptr) {
    return Fail(absl::UnavailableError("libcurl has no memory"), std::move(transfer->on_done));
  }
  transfer->SetUp();
  transfer->SetUpTls();
  curl_->functions->multi_add_handle(curl_->multi, transfer->easy);
  transfers_.emplace(++last_id_, std::move(transfer));
  return last_id_;
}

uint64_t Transport::Fail(absl::Status status, OnDone on_done) {
  auto transfer = std::make_unique<Transfer>();
  transfer->answer.status = std::move(status);
  transfer->on_done = std::move(on_done);
  transfer->done = true;
  transfers_.emplace(++last_id_, std::move(transfer));
  return last_id_;
}

void Transport::Cancel(uint64_t id) {
  const auto found = transfers_.find(id);
  if (found == transfers_.end()) return;
  const Transfer& transfer = *found->second;
  if (transfer.easy != nullptr) {
    curl_->functions->multi_remove_handle(curl_->multi, transfer.easy);
    curl_->functions->easy_cleanup(transfer.easy);
    curl_->functions->slist_free_all(transfer.headers);
  }
  transfers_.erase(found);
}

void Transport::CancelAll() {
  while (!transfers_.empty()) Cancel(transfers_.begin()->first);
}

// What curl has finished.
void Transport::Collect() {
  int running = 0;
  curl_->functions->multi_perform(curl_->multi, &running);
  int left = 0;
  while (const CURLMsg* message = curl_->functions->multi_info_read(curl_->multi, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    char* transfer = nullptr;
    curl_->functions->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    reinterpret_cast<Transfer*>(transfer)->End(message->data.result);
  }
}

// The callbacks may cancel any transfer: so each is looked up anew.
void Transport::TellOf(uint64_t id) {
  const auto lines = std::exchange(transfers_.at(id)->lines, {});
  for (const std::string& line : lines) {
    const auto found = transfers_.find(id);
    if (found == transfers_.end()) return;
    const OnLine on_line = found->second->on_line;
    on_line(line);
  }
  const auto found = transfers_.find(id);
  if (found == transfers_.end() || !found->second->done) return;
  const OnDone on_done = std::move(found->second->on_done);
  HttpsAnswer answer = std::move(found->second->answer);
  Cancel(id);
  on_done(std::move(answer));
}

bool Transport::Tell() {
  std::vector<uint64_t> news;
  for (const auto& [id, transfer] : transfers_) {
    if (transfer->done || !transfer->lines.empty()) news.push_back(id);
  }
  for (const uint64_t id : news) {
    if (transfers_.contains(id)) TellOf(id);
  }
  return !news.empty();
}

void Transport::Run(absl::Duration wait) {
  Collect();
  if (Tell()) return;
  // A millisecond more than there is left, rather than many turns of none.
  const long limit = std::min(Milliseconds(wait), 3'600'000L) + 1;
  curl_->functions->multi_poll(curl_->multi, nullptr, 0, static_cast<int>(limit), nullptr);
  Collect();
  Tell();
}

void Transport::Wake() { curl_->functions->multi_wakeup(curl_->multi); }

}  // namespace vfio_agent
