// DeferredCall: one call of a unary method whose answer may come later, from any thread.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_unary_call.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "deviceplugin/grpc/completion.h"
#include "deviceplugin/grpc/mutex.h"

namespace vfio_agent {

// The calls of one server that wait for their answer, so that they can be ended.
class OpenCalls {
 public:
  // `end` is called by End(), or at once where the calls have been ended, without the lock. It must
  // not keep the call alive.
  uint64_t Add(std::function<void()> end) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      const MutexLock lock(mutex_);
      if (!ended_) {
        ends_.emplace(++last_, std::move(end));
        return last_;
      }
    }
    end();
    return 0;
  }
  void Remove(uint64_t token) ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    ends_.erase(token);
  }
  void End() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::map<uint64_t, std::function<void()>> ends;
    {
      const MutexLock lock(mutex_);
      ended_ = true;
      ends.swap(ends_);
    }
    for (const auto& entry : ends) entry.second();
  }

 private:
  Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, std::function<void()>> ends_ ABSL_GUARDED_BY(mutex_);
};

// A method of `Rpc`, the generated asynchronous service. All that it names outlives the server.
template <typename Rpc, typename Request, typename Response>
struct DeferredMethod {
  using Ask = void (Rpc::*)(grpc::ServerContext*, Request*,
                            grpc::ServerAsyncResponseWriter<Response>*, grpc::CompletionQueue*,
                            grpc::ServerCompletionQueue*, void*);
  using Done = std::function<void(Response)>;
  Rpc& rpc;
  QueueLease queue;
  Ask ask;  // Rpc's Request<Method>()
  // Calls `done` once, on any thread.
  std::function<void(const Request&, Done done)> answer;
  OpenCalls* open = nullptr;
};

// It owns itself: from Await() until the answer is out, or until the server shuts down uncalled.
template <typename Rpc, typename Request, typename Response>
class DeferredCall : public std::enable_shared_from_this<DeferredCall<Rpc, Request, Response>> {
 public:
  using Method = DeferredMethod<Rpc, Request, Response>;

  // Takes the next call of the method and then every further one.
  static void Await(const Method& method) {
    const auto call = std::make_shared<DeferredCall>(method);
    call->self_ = call;
    (method.rpc.*method.ask)(&call->context_, &call->request_, &call->writer_, method.queue.get(),
                             method.queue.get(), &call->called_);
  }

  explicit DeferredCall(const Method& method) : method_(method) {}

 private:
  void Called(bool ok) {
    if (!ok) {
      self_.reset();  // deletes *this
      return;
    }
    Await(method_);
    const std::weak_ptr<DeferredCall> weak = this->weak_from_this();
    token_ = method_.open->Add([weak] {
      if (const auto call = weak.lock()) {
        call->Finish(Response(), {grpc::StatusCode::UNAVAILABLE, "the agent stops"});
      }
    });
    // Whoever forgets to answer does not keep the server from ending.
    method_.answer(request_, [weak](Response response) {
      if (const auto call = weak.lock()) call->Finish(std::move(response), grpc::Status::OK);
    });
  }

  void Finish(Response response, const grpc::Status& status) {
    {
      const MutexLock lock(mutex_);
      if (finished_) return;  // it was ended, or the other way round
      finished_ = true;
    }
    if (status.ok()) {
      writer_.Finish(response, status, &answered_);
    } else {
      writer_.FinishWithError(status, &answered_);
    }
  }

  const Method method_;  // ends last, and the lease with it
  std::shared_ptr<DeferredCall> self_;
  grpc::ServerContext context_;
  Request request_;
  grpc::ServerAsyncResponseWriter<Response> writer_{&context_};
  Completion called_{[this](bool ok) { Called(ok); }};
  Completion answered_{[this](bool) {
    method_.open->Remove(token_);
    const auto last = std::move(self_);  // may delete *this on leaving
  }};
  uint64_t token_ = 0;
  Mutex mutex_;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace vfio_agent
