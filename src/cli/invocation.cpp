// SPDX-License-Identifier: MIT
#include "cli/invocation.hpp"

#include <cstddef>
#include <sstream>

namespace redlock::cli {
namespace {

constexpr std::size_t option_column = 26;
constexpr std::size_t page_width = 100;

// The words in lines of this width; CLI11 indents what follows a line break.
std::string wrapped_words(const std::string& text, std::size_t width) {
  std::istringstream words(text);
  std::string result;
  std::size_t column = 0;
  for (std::string word; words >> word; column += word.size()) {
    if (column + 1 + word.size() > width) {
      result += '\n';
      column = 0;
    } else if (column > 0) {
      result += ' ';
      ++column;
    }
    result += word;
  }
  return result;
}

// CLI11 makes a line of usage from the options, which cannot say `-- CMD ARG...`.
class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::string usage) : usage_(std::move(usage)) {
    column_width(option_column);
    label("Positionals", "Arguments");
    label("REQUIRED", "");
    label("TEXT", "");
    label("UINT", "");
  }
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "\nUsage: " + usage_ + "\n";
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped_words(CLI::Formatter::make_option_desc(option), page_width - option_column);
  }
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    auto text = CLI::Formatter::make_help(app, std::move(name), mode);
    for (auto at = text.find("\n\n\n"); at != std::string::npos; at = text.find("\n\n\n", at)) {
      text.erase(at, 1);
    }
    return text;
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
