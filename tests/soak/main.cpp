// SPDX-License-Identifier: MIT
// Long runs on real servers, with faults as flags. Each prints its figures as it goes on, and ends
// with 0 if all was as promised.
#include <cstdlib>
#include <exception>
#include <map>

#include <redlock/admin.hpp>

#include "soak/soak.hpp"

namespace redlock::soak {

CLI::Option* add_length(CLI::App& run, int& length, const std::string& help) {
  const std::map<std::string, int> units{{"s", 1}, {"m", 60}, {"h", 3600}};
  return run.add_option("--for", length, help)->transform(CLI::AsNumberWithUnit(units));
}

Client start_client(ClientOptions options) {
  if (const char* file = std::getenv("REDLOCK_TRACE")) options.trace = trace_to_file(file);
  auto client = Client::create(std::move(options));
  if (!client) throw std::runtime_error(client.error().message);
  return std::move(*client);
}

void await(const std::function<bool()>& is_so, milliseconds patience, const char* otherwise) {
  const auto limit = BootClock::now() + patience;
  while (!is_so()) {
    if (BootClock::now() > limit) throw std::runtime_error(otherwise);
    std::this_thread::sleep_for(2ms);
  }
}

void adopt(const Fleet& fleet, milliseconds max_lease) {
  ClientOptions options;
  options.nodes = fleet.uris();
  options.lease = options.max_lease = max_lease;
  // The machine may be busy, and this only sets up.
  options.node_timeout = options.connect_timeout = options.resolve_timeout = 10s;
  const Client client = start_client(std::move(options));
  const auto adopted = Admin(client).adopt();
  if (!adopted) throw std::runtime_error(adopted.error().message);
  for (const NodeAdoption& node : *adopted) {
    if (node.adoption != Adoption::written)
      throw std::runtime_error(node.node + ": " + node.detail);
  }
}

std::size_t keys_left(const Fleet& fleet) {
  std::size_t count = 0;
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    const auto keys = fleet.run(node, {"KEYS", "redlock:[lw]*"});
    if (keys == "(empty array)") continue;
    count += 1 + static_cast<std::size_t>(std::ranges::count(keys, '\n'));
  }
  return count;
}

std::uint64_t connections_in(const std::string& info) {
  constexpr std::string_view field = "total_connections_received:";
  const auto at = info.find(field);
  if (at == std::string::npos) throw std::runtime_error("a node does not count connections");
  return std::stoull(info.substr(at + field.size()));
}

}  // namespace redlock::soak

int main(int argc, char** argv) {
  using namespace redlock::soak;
  CLI::App app{
      "Long runs on real servers: the subcommand says what clients do, its flags what happens to\n"
      "them meanwhile. It starts its own nodes, prints figures as it goes on, and says at last\n"
      "`as promised` and ends with 0, or `NOT AS PROMISED` and 1. With --careless a run leaves "
      "out\n"
      "what keeps the promise, and fails unless it sees it broken: otherwise it would prove "
      "nothing.\n"
      "\n"
      "100,000 leases, judged (five minutes):\n"
      "  soak holding --most-cpu 5 --most-memory 500\n"
      "nodes restarted empty, one after the other:\n"
      "  soak rolling --restarts 50\n"
      "what each flag does:\n"
      "  soak waiting --help"};
  app.require_subcommand(1);
  Run chosen;
  for (const auto add : {add_holding, add_forgetting, add_rolling, add_replacing, add_load,
                         add_returning, add_waiting}) {
    add(app, chosen);
  }
  CLI11_PARSE(app, argc, argv);
  try {
    const bool well = chosen();
    fmt::print("{}\n", well ? "as promised" : "NOT AS PROMISED");
    return well ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception& error) {
    fmt::print(stderr, "soak: {}\n", error.what());
    return EXIT_FAILURE;
  }
}
