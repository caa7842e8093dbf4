// SPDX-License-Identifier: MIT
// A real Prometheus that scrapes this process several times a second, with the alert rules of the
// repository. What takes minutes there takes seconds here: nothing else of the rules is changed.
#pragma once

#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <httplib.h>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cluster/free_port.hpp"
#include "integration/cli_process.hpp"
#include "support/temporary_directory.hpp"

namespace redlock::testing {

/// Serves each text at the path /NAME.
class Exporter {
 public:
  using Texts = std::map<std::string, std::function<std::string()>>;

  explicit Exporter(const Texts& texts) {
    for (const auto& [name, text] : texts) {
      server_.Get("/" + name, [made = text](const httplib::Request&, httplib::Response& response) {
        response.set_content(made(), "text/plain; version=0.0.4");
      });
      names_.push_back(name);
    }
    port_ = server_.bind_to_any_port("127.0.0.1");
    REQUIRE(port_ > 0);
    listener_ = std::thread([this] { server_.listen_after_bind(); });
    REQUIRE(eventually([&] { return server_.is_running(); }));
  }
  ~Exporter() {
    server_.stop();
    listener_.join();
  }
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  httplib::Server server_;
  std::vector<std::string> names_;
  int port_ = 0;
  std::thread listener_;
};

class Prometheus {
 public:
  /// Each text of the exporter is that of an instance with its name, all of the job "service".
  Prometheus(const std::string& program, const Exporter& exporter)
      : process_(
            {"--config.file=" + configuration(exporter),
             "--storage.tsdb.path=" + (place_.path() / "data").string(),
             fmt::format("--web.listen-address=127.0.0.1:{}", port_.number()), "--log.level=error"},
            {}, program) {
    REQUIRE(eventually([&] { return !get("/-/ready").is_discarded(); }));
  }

  /// The names of all alerts that it has read from the rules. Each has one of its own, a severity
  /// and a summary.
  [[nodiscard]] std::set<std::string> alerts() {
    std::set<std::string> names;
    const auto all = get("/api/v1/rules");
    for (const auto& group : all.at("data").at("groups")) {
      for (const auto& rule : group.at("rules")) {
        CHECK(names.insert(rule.at("name")).second);
        const std::string severity = rule.at("labels").at("severity");
        CHECK((severity == "page" || severity == "ticket"));
        CHECK_FALSE(std::string(rule.at("annotations").at("summary")).empty());
      }
    }
    return names;
  }
  /// Those that fire now, with this value of a label: "RedlockNodeDown node=redis://...".
  [[nodiscard]] std::set<std::string> firing() {
    std::set<std::string> found;
    const auto all = get("/api/v1/alerts");
    if (!all.is_object()) return found;
    for (const auto& alert : all.at("data").at("alerts")) {
      if (alert.at("state") != "firing") continue;
      for (const auto& [label, value] : alert.at("labels").items()) {
        found.insert(fmt::format("{} {}={}", std::string(alert.at("labels").at("alertname")), label,
                                 std::string(value)));
      }
    }
    return found;
  }

 private:
  /// Minutes become seconds, in the rules' windows and in the time for which they must hold.
  [[nodiscard]] std::string rules() const {
    std::ostringstream text;
    text << std::ifstream(REDLOCK_SOURCE_DIR "/cluster/monitoring/redlock.rules.yml").rdbuf();
    std::string quick = std::regex_replace(text.str(), std::regex(R"(\[\d+m\])"), "[3s]");
    quick = std::regex_replace(quick, std::regex(R"(for: \d+m\n)"), "for: 500ms\n");
    const auto file = place_.path() / "rules.yml";
    std::ofstream(file) << quick;
    return file.string();
  }
  [[nodiscard]] std::string configuration(const Exporter& exporter) const {
    std::string text = fmt::format(
        "global: {{scrape_interval: 400ms, scrape_timeout: 400ms, evaluation_interval: 200ms}}\n"
        "rule_files: ['{}']\n"
        "scrape_configs:\n"
        "  - job_name: service\n"
        "    static_configs:\n",
        rules());
    for (const std::string& name : exporter.names()) {
      text += fmt::format(
          "      - targets: ['127.0.0.1:{}']\n"
          "        labels: {{__metrics_path__: /{}, instance: {}}}\n",
          exporter.port(), name, name);
    }
    const auto file = place_.path() / "prometheus.yml";
    std::ofstream(file) << text;
    return file.string();
  }
  /// Null for an answer that is no JSON; discarded if there is no answer.
  json get(const std::string& path) {
    httplib::Client client("127.0.0.1", port_.number());
    const auto answer = client.Get(path);
    if (!answer || answer->status != 200) {
      return json(json::value_t::discarded);
    }
    const auto read = json::parse(answer->body, nullptr, false);
    return read.is_discarded() ? json() : read;
  }

  TemporaryDirectory place_;
  cluster::FreePort port_ = cluster::FreePort::pick();
  Running process_;
};

}  // namespace redlock::testing
