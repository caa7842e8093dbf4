// SPDX-License-Identifier: MIT
// What the parts of the library cost by themselves, on one thread and without a network: a step of
// the engine, a command as bytes, bytes as a reply, a whole cycle from the request to the bytes and
// back, and the renewals of many leases. `--benchmark_filter=TEXT` chooses.
#include <benchmark/benchmark.h>
#include <cstdlib>
#include <malloc.h>
#include <memory>
#include <string>
#include <variant>

#include "memory_nodes.hpp"
#include "support/counted_new.hpp"
#include "wire/script_call.hpp"

namespace {

using namespace redlock;
using bench::MemoryNodes;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::allocations;

constexpr engine::Token some_token = 1'700'000'000'000'001;

engine::Name named(std::size_t number) {
  return std::make_shared<const std::string>("bench:" + std::to_string(number));
}

std::size_t heap_in_use() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

double each(std::uint64_t sum, const benchmark::State& state) {
  return static_cast<double>(sum) / static_cast<double>(state.iterations());
}

/// An engine alone, whose commands are answered as they come: acquire on five nodes, and release.
void engine_cycle(benchmark::State& state) {
  bench::CountingRandom random;
  engine::Engine engine({.nodes = 5}, random);
  engine::Instant now{std::chrono::hours(1)};
  engine::Outputs outputs;
  engine::RequestId request = 0;
  engine::GrantId granted = 0;
  const engine::Name name = named(1);
  const auto answer = [&](const engine::Reply& reply) {
    engine.take_outputs(outputs);
    for (const engine::ClientOutput& output : outputs.client) {
      const auto* const finish = std::get_if<engine::Finish>(&output);
      if (finish == nullptr) continue;
      if (const auto* won = std::get_if<engine::AcquireSucceeded>(&finish->result)) {
        granted = won->grant;
      }
    }
    for (const engine::NodeOutput& output : outputs.nodes) {
      const auto& send = std::get<engine::Send>(output);
      engine.on_reply(now, send.node, send.tag, reply);
    }
    outputs.clear();
  };
  const std::size_t before = allocations;
  for (auto _ : state) {
    now += milliseconds(1);
    engine.acquire(now, ++request, {.name = name, .lease = seconds(30), .max_hold = {}});
    answer(engine::Granted{some_token});
    answer(engine::Granted{some_token});
    engine.release(now, ++request, granted);
    answer(engine::ReleasedHere{});
    answer(engine::ReleasedHere{});
  }
  state.counters["allocations"] = each(allocations - before, state);
}
BENCHMARK(engine_cycle);

wire::ScriptSet loaded_scripts() {
  wire::ScriptSet scripts(wire::ScriptSet::Flags::understood);
  for (const wire::ScriptRow& row : wire::script_rows()) {
    scripts.set_digest(row.script, std::string(40, 'd'));
  }
  return scripts;
}

void encode_acquire(benchmark::State& state) {
  const wire::ScriptSet scripts = loaded_scripts();
  const engine::Command command = engine::AcquireCommand{
      .name = named(1), .owner = {{1, 2}}, .lease = seconds(30), .floor = some_token};
  std::string out;
  for (auto _ : state) {
    out.clear();
    wire::write_call(out, scripts, engine::Form::digest, command);
    benchmark::DoNotOptimize(out.data());
  }
  state.counters["bytes"] = static_cast<double>(out.size());
}
BENCHMARK(encode_acquire);

/// So many holds in one call.
void encode_holds(benchmark::State& state) {
  const wire::ScriptSet scripts = loaded_scripts();
  const engine::Command hold = engine::HoldCommand{
      .name = named(1), .owner = {{1, 2}}, .lease = seconds(30), .token = some_token};
  wire::CallParts parts;
  std::string out;
  for (auto _ : state) {
    out.clear();
    parts.clear();
    for (std::int64_t i = 0; i < state.range(0); ++i) parts.add(hold);
    parts.write(out, scripts, engine::Form::digest, wire::script_of(hold));
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["bytes"] = static_cast<double>(out.size());
}
BENCHMARK(encode_holds)->Arg(1)->Arg(100);

void parse(benchmark::State& state, const std::string& bytes) {
  wire::ReplyReader reader;
  for (auto _ : state) {
    reader.feed(bytes);
    if (reader.next(1 << 20) != wire::ReplyReader::Outcome::complete) {
      state.SkipWithError("no reply");
      return;
    }
    benchmark::DoNotOptimize(reader.reply().size());
  }
  state.counters["bytes"] = static_cast<double>(bytes.size());
}

void parse_grant(benchmark::State& state) {
  parse(state, "*2\r\n:1\r\n:1700000000000001\r\n");
}
BENCHMARK(parse_grant);

/// The reply to so many holds in one call.
void parse_holds(benchmark::State& state) {
  std::string bytes = "*" + std::to_string(state.range(0)) + "\r\n";
  for (std::int64_t i = 0; i < state.range(0); ++i) bytes += "*2\r\n:1\r\n:1700000000000001\r\n";
  parse(state, bytes);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(parse_holds)->Arg(1)->Arg(100);

/// Acquire and release through the engine and down to the bytes, on so many nodes. What the nodes
/// of this program cost is in it: some 0.1 us a command.
void driver_cycle(benchmark::State& state) {
  MemoryNodes nodes(static_cast<std::size_t>(state.range(0)));
  const engine::Name name = named(1);
  const auto cycle = [&] {
    nodes.acquire(name);
    nodes.run();
    nodes.release(nodes.granted);
    nodes.run();
  };
  for (int i = 0; i < 100; ++i) cycle();
  const std::size_t before = allocations;
  const std::uint64_t written = nodes.writes;
  const std::uint64_t bytes = nodes.bytes_written;
  for (auto _ : state) cycle();
  state.counters["allocations"] = each(allocations - before, state);
  state.counters["writes"] = each(nodes.writes - written, state);
  state.counters["bytes"] = each(nodes.bytes_written - bytes, state);
}
BENCHMARK(driver_cycle)->DenseRange(1, 9, 2);

/// Leases of 30 s, renewed every 10 s: what 10 ms of that cost. `ns_each` is the time for one
/// renewal on all five nodes.
void many_leases(benchmark::State& state) {
  const auto leases = static_cast<std::size_t>(state.range(0));
  const std::size_t before = heap_in_use();
  MemoryNodes nodes(5);
  for (std::size_t i = 0; i < leases; ++i) {
    nodes.acquire(named(i), true);
    nodes.run();
    // As long as it takes to acquire them, at 20,000 a second.
    nodes.pass(std::chrono::microseconds(50));
  }
  nodes.pass(seconds(10));
  const std::size_t after = heap_in_use();
  const std::uint64_t renewed_before = nodes.renewals;
  const std::uint64_t written_before = nodes.writes;
  const std::size_t allocated_before = allocations;
  for (auto _ : state) nodes.pass(milliseconds(10));
  if (nodes.grants != leases || nodes.losses > 0) state.SkipWithError("a lease was lost");
  const auto renewed = static_cast<double>(nodes.renewals - renewed_before);
  state.counters["ns_each"] =
      benchmark::Counter(renewed / 1e9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["renewals_a_write"] =
      5 * renewed / static_cast<double>(nodes.writes - written_before);
  state.counters["allocations_each"] =
      static_cast<double>(allocations - allocated_before) / renewed;
  state.counters["bytes_each"] = static_cast<double>(after - before) / static_cast<double>(leases);
}
BENCHMARK(many_leases)->Arg(1'000)->Arg(100'000)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
