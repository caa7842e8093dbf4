// SPDX-License-Identifier: MIT
#include "cli/options.hpp"

namespace redlock::cli {

void add_name_option(CLI::App& app, std::string& name) {
  app.add_option("NAME", name, "The lock: 1 to 512 bytes, any but NUL, { and }")->required();
}

CLI::Option* add_owner_option(CLI::App& app, std::string& owner) {
  return app.add_option("--owner", owner, "The owner that `redlock acquire` printed")
      ->required()
      ->option_text("OWNER");
}

void add_label_option(CLI::App& app, std::string& label) {
  app.add_option("--as", label, "The name of the holder in `redlock status`; default: the program")
      ->option_text("LABEL");
}

void add_ordering_option(CLI::App& app, std::optional<Ordering>& ordering) {
  app.add_option_function<std::string>(
         "--ordering",
         [&ordering](const std::string& text) {
           ordering = text == "fifo" ? Ordering::fifo : Ordering::barging;
         },
         "Which waiter gets the lock next: fifo (default), the one that has waited longest, or "
         "barging, the first that asks after a release")
      ->check(CLI::IsMember({"fifo", "barging"}))
      ->option_text("HOW");
}

CLI::Option* add_duration_option(CLI::App& app, const std::string& option,
                                 std::optional<std::chrono::milliseconds>& value, Zero zero,
                                 Forever endless, const std::string& description) {
  return app
      .add_option_function<std::string>(
          option,
          [&value, option, zero, endless](const std::string& text) {
            value = parse_duration(option, text, zero, endless);
          },
          description)
      ->option_text("DUR");
}

}  // namespace redlock::cli
