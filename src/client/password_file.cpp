// SPDX-License-Identifier: MIT
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <redlock/options.hpp>

#include "client/small_file.hpp"
#include "wire/node_address.hpp"

namespace redlock {
namespace {

tl::unexpected<Error> wrong_file(std::string sentence) {
  return tl::make_unexpected(Error{Errc::invalid_argument, std::move(sentence), {}});
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool begins_with_node(std::string_view line) {
  return line.starts_with("redis://") || line.starts_with("rediss://") ||
         line.starts_with("unix://");
}

bool counts_for_nothing(std::string_view line) {
  return line.empty() || line.starts_with('#');
}

/// Whether the first line that counts is about a node.
bool has_nodes(std::string_view text) {
  std::string_view line;
  do {
    line = take_line(text);
  } while (counts_for_nothing(line) && !text.empty());
  return begins_with_node(line);
}

/// The node as errors show it, from that form or from its URI. Empty if the text is no node, or has
/// a password.
std::optional<std::string> label_of(std::string_view node) {
  std::string uri(node);
  const std::size_t login = uri.find("://") + 3;
  const std::size_t at = uri.find('@', login);
  const bool has_user = at < uri.find('/', login);
  if (has_user && uri.find(':', login) > at) uri.insert(at, ":");
  const auto parsed = wire::parse_node_uri(uri);
  if (!parsed || !parsed->password.empty()) return std::nullopt;
  return parsed->label;
}

/// One password for all nodes, or one for each.
class PasswordFile {
 public:
  static Result<PasswordFile> read(const std::string& path) {
    const auto text = read_small_file(path);
    if (!text) return tl::make_unexpected(text.error());
    PasswordFile file;
    if (has_nodes(*text)) return file.read_nodes(*text);
    std::string_view rest = *text;
    file.of_all_ = take_line(rest);
    if (!file.of_all_.empty()) return file;
    return wrong_file("its first line, which is to be the password, is empty");
  }

  [[nodiscard]] std::string of(std::string_view node) const {
    const auto found = of_nodes_.find(node);
    return found == of_nodes_.end() ? of_all_ : found->second;
  }

 private:
  Result<PasswordFile> read_nodes(std::string_view text) {
    for (std::size_t number = 1; !text.empty(); ++number) {
      const std::string_view line = take_line(text);
      if (counts_for_nothing(line)) continue;
      const auto wrong = [number](const char* what) {
        return wrong_file("line " + std::to_string(number) + what);
      };
      const std::size_t blank = line.find(' ');
      const auto node =
          begins_with_node(line) ? label_of(line.substr(0, blank)) : std::optional<std::string>();
      if (!node) {
        return wrong(
            " does not begin with a node; write redis://[user@]host[:port][/db], a space, and the "
            "password");
      }
      if (blank == std::string_view::npos || blank + 1 == line.size()) {
        return wrong(" has no password behind the node; write a space and the password there");
      }
      if (!of_nodes_.emplace(*node, line.substr(blank + 1)).second) {
        return wrong(" names the same node as an earlier line; take one of the two lines out");
      }
    }
    return std::move(*this);
  }

  std::string of_all_;
  std::map<std::string, std::string, std::less<>> of_nodes_;  // by the labels of nodes
};

}  // namespace

Result<std::function<std::string(std::string_view)>> password_from_file(std::string path) {
  if (auto file = PasswordFile::read(path); !file) {
    return tl::make_unexpected(std::move(file.error()));
  }
  return [path = std::move(path)](std::string_view node) {
    const auto file = PasswordFile::read(path);
    return file ? file->of(node) : std::string();
  };
}

}  // namespace redlock
