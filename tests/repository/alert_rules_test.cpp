// SPDX-License-Identifier: MIT
// The alert rules as Prometheus reads them. (Whether their families exist api_metrics_test says.)
#include <doctest/doctest.h>
#include <set>
#include <string>
#include <yaml-cpp/yaml.h>

namespace {

TEST_CASE("each alert has a name of its own, an expression, a severity and a summary") {
  const auto rules = YAML::LoadFile(REDLOCK_SOURCE_DIR "/cluster/monitoring/redlock.rules.yml");
  std::set<std::string> names;
  for (const auto& group : rules["groups"]) {
    for (const auto& rule : group["rules"]) {
      const auto name = rule["alert"].as<std::string>();
      CAPTURE(name);
      CHECK(names.insert(name).second);
      CHECK_FALSE(rule["expr"].as<std::string>().empty());
      const auto severity = rule["labels"]["severity"].as<std::string>();
      CHECK((severity == "page" || severity == "ticket"));
      CHECK_FALSE(rule["annotations"]["summary"].as<std::string>().empty());
    }
  }
  CHECK(names.size() > 4);
}

}  // namespace
