// SPDX-License-Identifier: MIT
// The fenced code blocks of a Markdown document.
#pragma once

#include <istream>
#include <string>
#include <vector>

namespace redlock::repository {

struct Block {
  std::string language;  // the first word after the fence: cpp, sh, console
  std::size_t line = 0;  // where its text begins, counted from 1
  std::vector<std::string> lines;
  bool run = true;
  std::string reason;  // why it is not run
  std::string file;    // the reader saves it as a file of this name; empty if not
};

/// A comment `<!-- not run: REASON -->` or `<!-- file: NAME -->` applies to the next block of the
/// document.
[[nodiscard]] std::vector<Block> read_blocks(std::istream& in);

/// What a reader would type: the lines of a sh block; in a console block those after "$ ", with
/// their continuations. `./dev test` is left out: the test that runs the document is part of it.
[[nodiscard]] std::vector<std::string> commands(const Block& block);

/// The other lines of a console block.
[[nodiscard]] std::vector<std::string> expected_output(const Block& block);

/// The first expected line that does not appear, after those before it, in the output; empty if
/// all do. In an expected line `…` stands for any text.
[[nodiscard]] std::string missing_output(const std::vector<std::string>& expected,
                                         const std::string& output);

}  // namespace redlock::repository
