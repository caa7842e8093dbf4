// SPDX-License-Identifier: MIT
#include "repository/tree.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace redlock::repository {
namespace {

const std::filesystem::path root = REDLOCK_SOURCE_DIR;

std::vector<std::string> listed_by_git() {
  // Another user's checkout is read as well: nothing of it is executed.
  const std::string command = "git -c safe.directory='*' -C '" + root.string() +
                              "' ls-files -z --cached --others --exclude-standard";
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run git");
  std::string output;
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    output.append(buffer.data(), n);
  }
  if (pclose(pipe) != 0) throw std::runtime_error("git ls-files failed in " + root.string());

  std::vector<std::string> paths;
  for (std::size_t start = 0; start < output.size();) {
    const std::size_t end = output.find('\0', start);
    paths.push_back(output.substr(start, end - start));
    start = end + 1;
  }
  return paths;
}

std::vector<File> read_all() {
  std::vector<File> result;
  for (const std::string& path : listed_by_git()) {
    std::ifstream in(root / path);
    if (!in) continue;  // deleted, but not yet in the index
    File file{path, {}};
    for (std::string line; std::getline(in, line);) file.lines.push_back(line);
    result.push_back(std::move(file));
  }
  return result;
}

}  // namespace

const std::vector<File>& files() {
  static const std::vector<File> all = read_all();
  return all;
}

std::vector<File> cpp_files() {
  std::vector<File> result;
  std::copy_if(files().begin(), files().end(), std::back_inserter(result), [](const File& file) {
    return file.path.ends_with(".hpp") || file.path.ends_with(".cpp");
  });
  return result;
}

bool starts_with_any(const std::string& text, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return text.starts_with(prefix); });
}

std::string at(const File& file, std::size_t line_index) {
  return file.path + ":" + std::to_string(line_index + 1) + ": " + file.lines.at(line_index);
}

std::string join(const std::vector<std::string>& findings) {
  std::string text;
  for (const std::string& finding : findings) text += finding + "\n";
  return text;
}

}  // namespace redlock::repository
