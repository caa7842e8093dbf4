// SPDX-License-Identifier: MIT
// The repository as git sees it: the files that are tracked, or would be if they were added.
#pragma once

#include <string>
#include <vector>

namespace redlock::repository {

struct File {
  std::string path;  // relative to the root
  std::vector<std::string> lines;
};

/// All text files, read once.
[[nodiscard]] const std::vector<File>& files();

/// The C++ files among them.
[[nodiscard]] std::vector<File> cpp_files();

[[nodiscard]] bool starts_with_any(const std::string& text,
                                   const std::vector<std::string>& prefixes);

/// "path:line: text", as compilers write it, for one finding.
[[nodiscard]] std::string at(const File& file, std::size_t line_index);

/// One finding a line, so that a failed check shows them all.
[[nodiscard]] std::string join(const std::vector<std::string>& findings);

}  // namespace redlock::repository
