// SPDX-License-Identifier: MIT
#include "admin/twins.hpp"

#include <algorithm>
#include <map>

#include "net/kernel_random.hpp"
#include "wire/adoption.hpp"
#include "wire/key_layout.hpp"
#include "wire/server_identities.hpp"

namespace redlock::admin {

Result<std::vector<std::optional<std::size_t>>> find_twins(
    NodeQuery& query, const std::vector<std::string>& run_ids) {
  std::vector<std::optional<std::size_t>> twins(run_ids.size());
  std::vector<std::vector<QueryCommand>> writes(run_ids.size());
  std::vector<std::vector<QueryCommand>> reads(run_ids.size());
  std::vector<std::string> values(run_ids.size());
  std::map<std::string, std::size_t> seen;
  net::KernelRandom random;
  for (std::size_t i = 0; i < run_ids.size(); ++i) {
    if (run_ids[i].empty()) continue;
    const auto [first, is_new] = seen.emplace(run_ids[i], i);
    if (is_new) continue;
    twins[i] = first->second;
    // Two databases of one server have different keys.
    if (query.nodes()[i].db != query.nodes()[*twins[i]].db) continue;
    const auto key = std::string(wire::redlock_layout.identity_prefix) + wire::random_id(random);
    values[i] = wire::random_id(random);
    writes[*twins[i]].push_back(
        {"SET", key, values[i], "PX",
         std::to_string(wire::ServerIdentities::key_lasts / std::chrono::milliseconds(1))});
    reads[i] = {{"GET", key}};
  }
  if (std::ranges::all_of(values, &std::string::empty)) return twins;

  const auto timeout = query.options().node_timeout;
  const auto written = query.ask(writes, timeout);
  if (!written) return tl::make_unexpected(written.error());
  const auto read = query.ask(reads, timeout);
  if (!read) return tl::make_unexpected(read.error());
  std::vector<std::size_t> next(run_ids.size());
  for (std::size_t i = 0; i < run_ids.size(); ++i) {
    if (values[i].empty()) continue;
    const std::size_t first = *twins[i];
    const auto& answer = (*read)[i].answers[0];
    const bool conclusive = text_of((*written)[first].answers[next[first]++]) == "OK" &&
                            trouble_of(answer, query.nodes()[i]).cause == Cause::none;
    if (conclusive && text_of(answer) != values[i]) twins[i].reset();
  }
  return twins;
}

}  // namespace redlock::admin
