// SPDX-License-Identifier: MIT
#include "cli/invocation.hpp"

namespace redlock::cli {
namespace {

// CLI11 makes a line of usage from the options, which cannot say `-- CMD ARG...`.
class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::string usage) : usage_(std::move(usage)) {
    column_width(26);
    label("Positionals", "Arguments");
    label("REQUIRED", "");
  }
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "Usage: " + usage_ + "\n";
  }

 private:
  std::string usage_;
};

}  // namespace

std::string text_of(const std::string& literal) {
  return literal.starts_with('\n') ? literal.substr(1) : literal;
}

CLI::App& add_subcommand(CLI::App& app, const Presentation& presentation) {
  auto* subcommand = app.add_subcommand(presentation.name, presentation.description);
  subcommand->formatter(std::make_shared<HelpFormatter>(presentation.usage));
  subcommand->footer(text_of(presentation.footer));
  return *subcommand;
}

}  // namespace redlock::cli
