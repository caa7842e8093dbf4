// SPDX-License-Identifier: MIT
// Runs what a document shows, so that it cannot rot. For its writer:
//
// - ```cpp: a block with `int main` is compiled and run; one with `#include` is compiled; any other
//   is compiled as the body of a function that has a `redlock::Client& client`. What is not run is
//   compiled together, each block in a namespace of its own, with the headers of all of them.
// - What includes cluster/fleet.hpp is compiled in the source tree, and linked with redlock_fleet;
//   what includes spdlog, with its library.
// - ```c: a program, compiled as C11 and run. ```python: one that may `import redlock`, run.
// - ```sh: run by bash, which stops at the first command that fails. ```console: lines after "$ "
//   are run, the others must appear in the output in this order (`…` stands for any text).
// - All commands of a document run in one shell, one after the other, in an empty directory with
//   `dev` and `build` of the repository, the redlock command in PATH, and REDLOCK_NODES naming five
//   nodes. C++ programs have REDLOCK_NODES too, as have those in C and Python.
// - The first `redis://…` of the document becomes the first of these nodes, the second the second.
// - `<!-- not run: REASON -->` before a block leaves it out; the reason is printed.
// - `<!-- file: NAME -->` before a block: it is saved as NAME, and only the commands use it.
// - Lines that begin with `./dev test` are left out. Blocks of other languages are for reading, but
//   the options of a `redlock` command in one of them, or in one that is not run, must exist.
// - `redlock` there waits two seconds for a node, as these tests run beside others, and ten where
//   it counts what each node answers.
#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <sys/wait.h>

#include "cluster/fleet.hpp"
#include "support/temporary_directory.hpp"

namespace redlock::repository {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryDirectory;

const fs::path source_dir = REDLOCK_SOURCE_DIR;

std::string read_text(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream out(path);
  out << text;
  REQUIRE_MESSAGE(out.good(), "cannot write ", path);
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// A fenced code block.
struct Block {
  std::string language;  // the first word after the fence: cpp, sh, console
  std::size_t line = 0;  // where its text begins, counted from 1
  std::vector<std::string> lines;
  bool run = true;
  std::string reason;  // why it is not run
  std::string file;    // the reader saves it as a file of this name; empty if not
};

/// Lines of a console block, each with whether it is typed or printed.
struct ConsoleLine {
  std::string text;
  bool typed = false;
};

std::vector<ConsoleLine> split_console(const Block& block) {
  std::vector<ConsoleLine> result;
  bool continued = false;
  for (const std::string& line : block.lines) {
    const bool prompt = line.starts_with("$ ");
    result.push_back({prompt ? line.substr(2) : line, prompt || continued});
    continued = result.back().typed && line.ends_with('\\');
  }
  return result;
}

std::string quoted_for_regex(const std::string& text) {
  static const std::regex special(R"([.^$|()\[\]{}*+?\\])");
  return std::regex_replace(text, special, R"(\$&)");
}

/// A comment `<!-- not run: REASON -->` or `<!-- file: NAME -->` applies to the next block of the
/// document.
std::vector<Block> read_blocks(std::istream& in) {
  static const std::regex fence(R"(^```\s*(\S*).*$)");
  static const std::regex mark(R"(^<!-- not run: (.*\S) -->$)");
  static const std::regex name(R"(^<!-- file: ([\w.-]+) -->$)");
  std::vector<Block> blocks;
  Block next;
  bool inside = false;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::smatch match;
    if (std::regex_match(line, match, fence)) {
      if (inside) {
        blocks.push_back(next);
        next = {};
      } else {
        next.language = match[1];
        next.line = number + 1;
      }
      inside = !inside;
    } else if (inside) {
      next.lines.push_back(line);
    } else if (std::regex_match(line, match, mark)) {
      next.run = false;
      next.reason = match[1];
    } else if (std::regex_match(line, match, name)) {
      next.file = match[1];
    }
  }
  return blocks;
}

/// What a reader would type: the lines of a sh block; in a console block those after "$ ", with
/// their continuations. `./dev test` is left out: the test that runs the document is part of it.
std::vector<std::string> commands(const Block& block) {
  std::vector<std::string> result;
  if (block.language == "console") {
    for (const ConsoleLine& line : split_console(block)) {
      if (line.typed) result.push_back(line.text);
    }
  } else {
    result = block.lines;
  }
  std::erase_if(result, [](const std::string& line) { return line.starts_with("./dev test"); });
  return result;
}

/// The other lines of a console block.
std::vector<std::string> expected_output(const Block& block) {
  std::vector<std::string> result;
  if (block.language != "console") return result;
  for (const ConsoleLine& line : split_console(block)) {
    if (!line.typed) result.push_back(line.text);
  }
  return result;
}

/// The first expected line that does not appear, after those before it, in the output; empty if
/// all do. In an expected line `…` stands for any text.
std::string missing_output(const std::vector<std::string>& expected, const std::string& output) {
  static const std::regex anything("…");
  std::istringstream in(output);
  std::string line;
  for (const std::string& text : expected) {
    const std::regex pattern(std::regex_replace(quoted_for_regex(text), anything, ".*"));
    bool found = false;
    while (!found && std::getline(in, line)) found = std::regex_match(line, pattern);
    if (!found) return text;
  }
  return {};
}

/// The document under test, its nodes replaced by those of the fleet.
std::vector<Block> blocks_for(const cluster::Fleet& fleet) {
  const char* const name = std::getenv("REDLOCK_DOCUMENT");
  const fs::path path = source_dir / (name != nullptr ? name : "README.md");
  REQUIRE_MESSAGE(fs::exists(path), path, " does not exist");
  std::string text = read_text(path);

  static const std::regex uri(R"(redis://[\w.:@\[\]-]+(/\d+)?)");
  std::vector<std::string> seen;
  std::string replaced;
  auto rest = text.cbegin();
  for (std::sregex_iterator match(text.begin(), text.end(), uri), end; match != end; ++match) {
    const auto known = std::find(seen.begin(), seen.end(), match->str());
    const auto index = static_cast<std::size_t>(known - seen.begin());
    if (known == seen.end()) seen.push_back(match->str());
    REQUIRE_MESSAGE(index < fleet.size(), "the document names more nodes than the fleet has");
    replaced.append(rest, (*match)[0].first).append(fleet.uri(index));
    rest = (*match)[0].second;
  }
  replaced.append(rest, text.cend());
  std::istringstream in(replaced);
  return read_blocks(in);
}

struct Outcome {
  int status = 0;
  std::string output;
};

/// Runs a bash script, its output going to a file beside it.
Outcome run_script(const TemporaryDirectory& workshop, const std::string& text) {
  const fs::path script = workshop.path() / ".script";
  const fs::path log = workshop.path() / ".log";
  write_text(script, "set -Eeuo pipefail\ncd '" + workshop.path().string() + "'\n" + text);
  const std::string command =
      "bash '" + script.string() + "' </dev/null >'" + log.string() + "' 2>&1";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, read_text(log)};
}

void check_c_program(const TemporaryDirectory& workshop, const Block& block) {
  write_text(workshop.path() / "block.c", joined(block.lines));
  const Outcome outcome =
      run_script(workshop,
                 "cc -std=c11 -pedantic -Wall -Wextra -c block.c $(pkg-config --cflags redlock)\n"
                 "${CXX:-c++} block.o -o block $(pkg-config --libs redlock)\ntimeout 60 ./block\n");
  CHECK_MESSAGE(outcome.status == 0, "the C block at line ", block.line, " failed:\n",
                outcome.output);
}

void check_python_program(const TemporaryDirectory& workshop, const Block& block) {
  write_text(workshop.path() / "block.py", joined(block.lines));
  const Outcome outcome = run_script(workshop, "export PYTHONDONTWRITEBYTECODE=yes PYTHONPATH='" +
                                                   (source_dir / "examples/python").string() +
                                                   "' REDLOCK_LIBRARY=" REDLOCK_SHARED_LIBRARY
                                                   "\ntimeout 60 python3 block.py\n");
  CHECK_MESSAGE(outcome.status == 0, "the Python block at line ", block.line, " failed:\n",
                outcome.output);
}

bool is_program(const Block& block) {
  return joined(block.lines).find("int main") != std::string::npos;
}

/// What a compiler is to be told for this text.
std::string compiler_flags(const std::string& text) {
  const bool needs_fleet = text.find("cluster/fleet.hpp") != text.npos;
  const bool needs_spdlog = text.find("#include <spdlog/") != text.npos;
  return (needs_fleet ? "-I '" + source_dir.string() + "' '" REDLOCK_FLEET_LIBRARY "' " : "") +
         "$(pkg-config --cflags --libs redlock" + (needs_spdlog ? " spdlog)" : ")") +
         (needs_fleet ? " -lfmt -pthread\n" : "\n");
}

void check_cpp_program(const TemporaryDirectory& workshop, const Block& block) {
  const std::string text = joined(block.lines);
  write_text(workshop.path() / "block.cpp", text);
  const Outcome outcome =
      run_script(workshop, "${CXX:-c++} -std=c++20 -Wall -Wextra block.cpp -o block " +
                               compiler_flags(text) + "timeout 60 ./block\n");
  CHECK_MESSAGE(outcome.status == 0, "the C++ block at line ", block.line, " failed:\n",
                outcome.output);
}

/// One source file of all blocks that are no programs: a compiler reads the headers once.
std::string joined_pieces(const std::vector<Block>& pieces) {
  std::string headers = "#include <redlock/redlock.hpp>\n#include <iostream>\n";
  std::string text;
  for (const Block& block : pieces) {
    const std::string line = std::to_string(block.line);
    std::string body;
    bool includes = false;
    for (const std::string& written : block.lines) {
      const bool is_include = written.starts_with("#include");
      includes = includes || is_include;
      if (is_include) headers += written + "\n";
      body += (is_include ? "" : written) + "\n";
    }
    if (!includes) {
      body = "void block([[maybe_unused]] redlock::Client& client) {\n#line " + line + "\n" + body +
             "}\n";
    }
    text += "namespace block_at_" + line + " {\n#line " + line + " \"document\"\n" + body + "}\n";
  }
  return headers + text;
}

void check_cpp_pieces(const TemporaryDirectory& workshop, const std::vector<Block>& pieces) {
  if (pieces.empty()) return;
  const std::string text = joined_pieces(pieces);
  write_text(workshop.path() / "pieces.cpp", text);
  const Outcome outcome = run_script(
      workshop, "${CXX:-c++} -std=c++20 -Wall -Wextra -c pieces.cpp " + compiler_flags(text));
  CHECK_MESSAGE(outcome.status == 0, "the C++ blocks that are only compiled failed:\n",
                outcome.output);
}

void check_program(const TemporaryDirectory& workshop, const Block& block) {
  if (block.language == "c") return check_c_program(workshop, block);
  if (block.language == "python") return check_python_program(workshop, block);
  check_cpp_program(workshop, block);
}

/// So that a node that is slow beside other tests does not make a set degraded. What the document
/// itself says of that stays.
constexpr const char* patient_command = R"(redlock() {
  local word
  for word; do
    case $word in
      --) break ;;
      --node-timeout) command redlock "$@"; return ;;
    esac
  done
  case $1 in
    exec | acquire | hold) command redlock "$1" --node-timeout 2s "${@:2}" ;;
    release | status | list | doctor | adopt) command redlock "$1" --node-timeout 10s "${@:2}" ;;
    set) command redlock set "$2" --node-timeout 10s "${@:3}" ;;
    *) command redlock "$@" ;;
  esac
}
)";

/// Of a block that is not run: the subcommands and options that the command does not have.
std::string unknown_options(const TemporaryDirectory& workshop, const Block& block) {
  static const std::regex call(R"(\bredlock ([a-z]+)((?: (?!--(?: |$))\S+)*))");
  static const std::regex option(R"(\s(--?[A-Za-z][\w-]*))");
  std::string unknown;
  const std::string text = joined(block.lines);
  for (std::sregex_iterator match(text.begin(), text.end(), call), end; match != end; ++match) {
    const std::string words = (*match)[2];
    const Outcome help = run_script(workshop, "redlock help " + (*match)[1].str() + "\n");
    if (help.status != 0) unknown += match->str() + "\n";
    for (std::sregex_iterator word(words.begin(), words.end(), option); word != end; ++word) {
      const std::regex listed("(^|[\\s,])" + (*word)[1].str() + "[\\s,]");
      if (!std::regex_search(help.output, listed)) unknown += (*word)[1].str() + "\n";
    }
  }
  return unknown;
}

/// All commands of the document in one shell, so that what one block exports the next one has.
void check_commands(const TemporaryDirectory& workshop, const std::vector<Block>& blocks) {
  std::string script = patient_command;
  for (const Block& block : blocks) {
    script += "echo " + std::to_string(block.line) + " >.block\n{\n" + joined(commands(block)) +
              "} >.output-" + std::to_string(block.line) + " 2>&1\n";
  }
  const Outcome outcome = run_script(workshop, script + "echo end >.block\n");
  std::string last;
  std::istringstream(read_text(workshop.path() / ".block")) >> last;
  CHECK_MESSAGE((outcome.status == 0 && last == "end"), "the commands at line ", last,
                " failed with status ", outcome.status, ":\n", outcome.output,
                read_text(workshop.path() / (".output-" + last)));
  if (last != "end") return;
  for (const Block& block : blocks) {
    const std::string output =
        read_text(workshop.path() / (".output-" + std::to_string(block.line)));
    const std::string missing = missing_output(expected_output(block), output);
    CHECK_MESSAGE(missing.empty(), "the commands at line ", block.line, " did not print\n", missing,
                  "\nbut\n", output);
  }
}

/// What the document starts it ends, too: a fleet would outlive the test.
void check_fleets_are_down(const TemporaryDirectory& workshop) {
  const fs::path fleets = workshop.path() / "redlock" / "fleet";
  if (!fs::exists(fleets)) return;
  for (const fs::path& fleet : fs::directory_iterator(fleets)) {
    const std::string name = fleet.filename().string();
    CHECK_MESSAGE(!fs::exists(fleet / "fleet"), "the document leaves the fleet ", name);
    run_script(workshop, "redlock fleet down --name " + name + "\n");
  }
}

void set_environment(const TemporaryDirectory& workshop, const cluster::Fleet& fleet) {
  std::string nodes;
  for (const std::string& uri : fleet.uris()) nodes += (nodes.empty() ? "" : ",") + uri;
  setenv("REDLOCK_NODES", nodes.c_str(), 1);
  setenv("PKG_CONFIG_PATH", REDLOCK_PKG_CONFIG_DIR, 1);
  setenv("PATH", (REDLOCK_BIN_DIR + std::string(":") + std::getenv("PATH")).c_str(), 1);
  // Where the command keeps its local fleet.
  setenv("XDG_STATE_HOME", workshop.path().c_str(), 1);
  fs::create_symlink(source_dir / "dev", workshop.path() / "dev");
  fs::create_directories(source_dir / "build");
  fs::create_symlink(source_dir / "build", workshop.path() / "build");
}

TEST_CASE("what the document shows works") {
  const cluster::Fleet fleet({.persistence = cluster::Persistence::always, .adopted = true});
  const TemporaryDirectory workshop;
  set_environment(workshop, fleet);

  std::vector<Block> pieces;
  std::vector<Block> programs;
  std::vector<Block> scripts;
  for (const Block& block : blocks_for(fleet)) {
    if (!block.file.empty()) {
      write_text(workshop.path() / block.file, joined(block.lines));
      continue;
    }
    const bool is_code =
        block.language == "cpp" || block.language == "c" || block.language == "python";
    const bool is_script = block.language == "sh" || block.language == "console";
    if (!block.run || !(is_code || is_script)) {
      const std::string unknown = unknown_options(workshop, block);
      CHECK_MESSAGE(unknown.empty(), "line ", block.line, " has what redlock does not know:\n",
                    unknown);
      if (!block.run) MESSAGE("not run: line ", block.line, ": ", block.reason);
      continue;
    }
    const bool is_piece = block.language == "cpp" && !is_program(block);
    (is_piece ? pieces : is_code ? programs : scripts).push_back(block);
  }
  CHECK_MESSAGE(!(pieces.empty() && programs.empty() && scripts.empty()),
                "the document has no block to run");
  check_cpp_pieces(workshop, pieces);
  for (const Block& block : programs) check_program(workshop, block);
  check_commands(workshop, scripts);
  check_fleets_are_down(workshop);
}

TEST_CASE("expected output is compared line by line, in order, with wildcards") {
  const std::string output = "granted token 17 (5 of 5)\nother\nreleased\n";
  CHECK(missing_output({"granted token … (5 of 5)", "released"}, output).empty());
  CHECK(missing_output({"released", "granted…"}, output) == "granted…");
  CHECK(missing_output({"granted token (5 of 5)"}, output) == "granted token (5 of 5)");
}

}  // namespace
}  // namespace redlock::repository
