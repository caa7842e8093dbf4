// SPDX-License-Identifier: MIT
//
// A directory for one test, and small programs in it that stand in for redis-server.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "cluster/temporary_directory.hpp"

namespace redlock::testing {

using cluster::TemporaryDirectory;

/// Writes an executable shell script and returns its path.
[[nodiscard]] inline std::string script_in(const TemporaryDirectory& directory,
                                           const std::string& name, const std::string& body) {
  const auto file = directory.path() / name;
  std::ofstream(file) << "#!/bin/sh\n" << body;
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  return file.string();
}

}  // namespace redlock::testing
