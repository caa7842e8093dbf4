// SPDX-License-Identifier: MIT
// Spans of OpenTelemetry around a program's use of a lock: one for each acquisition, with the votes
// of the nodes if it fails, and one for the time that the lock is held, with an event when it is
// lost. Spans are written to stdout; a service gives them to an exporter of its own. Run it with
// nodes:
//
//     eval "$(redlock fleet up -n 3)" && otel_spans
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <opentelemetry/context/runtime_context.h>
#include <opentelemetry/exporters/ostream/span_exporter_factory.h>
#include <opentelemetry/sdk/trace/batch_span_processor_factory.h>
#include <opentelemetry/sdk/trace/batch_span_processor_options.h>
#include <opentelemetry/sdk/trace/exporter.h>
#include <opentelemetry/sdk/trace/processor.h>
#include <opentelemetry/sdk/trace/tracer_provider.h>
#include <opentelemetry/sdk/trace/tracer_provider_factory.h>
#include <opentelemetry/trace/provider.h>
#include <opentelemetry/trace/scope.h>
#include <opentelemetry/trace/span.h>
#include <opentelemetry/trace/tracer.h>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include <redlock/redlock.hpp>

namespace {

using namespace std::chrono_literals;
namespace context = opentelemetry::context;
namespace nostd = opentelemetry::nostd;
namespace sdk = opentelemetry::sdk::trace;
namespace trace = opentelemetry::trace;

using SpanPointer = nostd::shared_ptr<trace::Span>;

nostd::shared_ptr<trace::Tracer> tracer() {
  return trace::Provider::GetTracerProvider()->GetTracer("redlock");
}

nostd::string_view view(const std::string& text) {
  return {text.data(), text.size()};
}

/// A child of the span that is current here.
SpanPointer begin_acquisition(const redlock::RedLock& lock, const redlock::AcquireOptions& how) {
  trace::StartSpanOptions options;
  options.kind = trace::SpanKind::kClient;
  return tracer()->StartSpan(
      "redlock.acquire",
      {{"redlock.name", view(lock.name())}, {"redlock.wait_ms", std::int64_t{how.wait.count()}}},
      options);
}

/// As for any client's span: an error has its sentence as the description, a success no status.
void end_acquisition(trace::Span& span, const redlock::Result<redlock::Lease>& lease) {
  if (lease) {
    span.SetAttribute("redlock.token", static_cast<std::int64_t>(lease->token()));
  } else {
    const redlock::Error& error = lease.error();
    span.SetAttribute("error.type", to_string(error.code));
    for (const redlock::NodeVote& vote : error.votes) {
      span.AddEvent("vote", {{"redlock.node", view(vote.node)},
                             {"redlock.vote", to_string(vote.vote)},
                             {"redlock.cause", to_string(vote.cause)},
                             {"redlock.detail", view(vote.detail)}});
    }
    span.SetStatus(trace::StatusCode::kError, view(error.message));
  }
  span.End();
}

redlock::Result<redlock::Lease> acquire(redlock::RedLock& lock,
                                        const redlock::AcquireOptions& options,
                                        std::stop_token stop = {}) {
  const SpanPointer span = begin_acquisition(lock, options);
  auto lease = lock.acquire(options, std::move(stop));
  end_acquisition(*span, lease);
  return lease;
}

/// The same without blocking. The callback runs on another thread, where the caller's span is not
/// the current one: the context is taken here and put in force there, so that spans that begin in
/// `then` have the parent that they would have here.
void async_acquire(redlock::RedLock& lock, const redlock::AcquireOptions& options,
                   redlock::Callback<redlock::Lease> then) {
  lock.async_acquire(options).start(
      [span = begin_acquisition(lock, options), caller = context::RuntimeContext::GetCurrent(),
       then = std::move(then)](redlock::Result<redlock::Lease> lease) mutable {
        const auto in_force = context::RuntimeContext::Attach(caller);
        end_acquisition(*span, lease);
        then(std::move(lease));
      });
}

/// A lease that is held for as long as this object lives, and the span of that time.
class HeldSpan {
 public:
  explicit HeldSpan(redlock::Lease lease)
      : lease_(std::move(lease)),
        span_(tracer()->StartSpan("redlock.hold",
                                  {{"redlock.name", view(lease_.name())},
                                   {"redlock.token", static_cast<std::int64_t>(lease_.token())}})),
        on_lost_(lease_.lost(), OnLost{this}) {}
  HeldSpan(const HeldSpan&) = delete;
  HeldSpan& operator=(const HeldSpan&) = delete;
  ~HeldSpan() { span_->End(); }

  [[nodiscard]] const redlock::Lease& lease() const { return lease_; }
  /// For a trace::Scope: spans that begin in it are children of this.
  [[nodiscard]] const SpanPointer& span() const { return span_; }

 private:
  struct OnLost {
    HeldSpan* held;
    void operator()() const {
      const auto reason = held->lease_.loss_reason();
      held->span_->AddEvent("lost", {{"redlock.reason", reason ? to_string(*reason) : ""}});
    }
  };

  redlock::Lease lease_;
  SpanPointer span_;
  std::stop_callback<OnLost> on_lost_;  // last: it uses the others, and waits until it has run
};

/// The work under the lock; lease.token() goes to the resource.
void write_report(const HeldSpan& held) {
  const trace::Scope scope(held.span());
  tracer()->StartSpan("write report")->End();
}

bool write_now(redlock::RedLock& lock) {
  auto lease = acquire(lock, {.wait = 20s});
  if (!lease) return std::puts(lease.error().message.c_str()), false;
  const HeldSpan held(std::move(*lease));
  write_report(held);
  // Another call, which does not wait, is turned away meanwhile.
  if (acquire(lock, {})) return std::puts("two have the lock"), false;
  return true;
}

bool write_in_a_callback(redlock::RedLock& lock) {
  std::promise<bool> promise;
  auto written = promise.get_future();
  async_acquire(lock, {.wait = 20s},
                [promise = std::move(promise)](redlock::Result<redlock::Lease> lease) mutable {
                  if (lease) write_report(HeldSpan(std::move(*lease)));
                  promise.set_value(lease.has_value());
                });
  return written.get();
}

/// Work that outlasts an unrenewed lease loses the lock.
bool write_for_too_long(redlock::RedLock& lock) {
  auto lease = acquire(lock, {.lease = 1s, .renewal = redlock::Renewal::never, .wait = 20s});
  if (!lease) return std::puts(lease.error().message.c_str()), false;
  const HeldSpan held(std::move(*lease));
  while (!held.lease().lost().stop_requested()) std::this_thread::sleep_for(10ms);
  return true;
}

/// Spans end on the client's loop thread, too, which must not wait for the exporter: a thread of
/// the processor hands them on, and spans for which it has no room are dropped.
std::shared_ptr<trace::TracerProvider> start_tracing() {
  auto exporter = opentelemetry::exporter::trace::OStreamSpanExporterFactory::Create(std::cout);
  return sdk::TracerProviderFactory::Create(sdk::BatchSpanProcessorFactory::Create(
      std::move(exporter), sdk::BatchSpanProcessorOptions{}));
}

bool run(redlock::Client& client) {
  redlock::RedLock lock = client.lock("report");
  const SpanPointer job = tracer()->StartSpan("nightly report");
  const trace::Scope scope(job);
  const bool ok = write_now(lock) && write_in_a_callback(lock) && write_for_too_long(lock);
  job->End();
  return ok;
}

}  // namespace

int main() {
  auto options = redlock::ClientOptions::from_env();
  if (!options) return std::puts(options.error().message.c_str()), EXIT_FAILURE;
  trace::Provider::SetTracerProvider(start_tracing());
  bool ok = false;
  if (auto client = redlock::Client::create(std::move(*options))) {
    ok = run(*client);
  } else {
    std::puts(client.error().message.c_str());
  }
  // The last owner of the provider waits until all spans are written.
  trace::Provider::SetTracerProvider(std::shared_ptr<trace::TracerProvider>());
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
