// SPDX-License-Identifier: MIT
// The page of `redlock bench --report`, read as text: it is whole, needs nothing from elsewhere,
// and has each plot twice. cli_bench_browser_test.cpp has a browser show it.
#include <doctest/doctest.h>
#include <regex>
#include <vector>

#include "cli_bench_page.hpp"
#include "support/temporary_directory.hpp"
#include "support/text.hpp"

namespace redlock::testing {
namespace {

/// The tags that are left open, or closed out of turn; empty if all is well.
std::string unbalanced_tags(const std::string& page) {
  static const std::regex tag(R"(<(/?)([a-zA-Z0-9]+)((?:\s+[a-zA-Z0-9-]+="[^"<]*")*)\s*(/?)>)");
  std::vector<std::string> open;
  for (std::sregex_iterator match(page.begin(), page.end(), tag), end; match != end; ++match) {
    const std::string name = (*match)[2];
    if ((*match)[4].length() > 0) continue;
    if ((*match)[1].length() == 0) {
      open.push_back(name);
    } else if (!open.empty() && open.back() == name) {
      open.pop_back();
    } else {
      return "</" + name + ">";
    }
  }
  return open.empty() ? "" : "<" + open.back() + ">";
}

TEST_CASE("the page is whole, and needs nothing from elsewhere") {
  const TemporaryDirectory place;
  const auto page = make_bench_page(place.path() / "page.html");
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(page.ends_with("</html>\n"));
  CHECK(unbalanced_tags(page) == "");
  // Each < begins a tag that the pattern above knows.
  static const std::regex known(
      R"(<(!DOCTYPE html|/?[a-zA-Z0-9]+(\s+[a-zA-Z0-9-]+="[^"<]*")*\s*/?)>)");
  const auto tags = std::distance(std::sregex_iterator(page.begin(), page.end(), known), {});
  CHECK(static_cast<std::size_t>(tags) == occurrences(page, "<"));
  for (const auto* elsewhere : {"http:", "https:", "src=", "href=", "@import", "url(", "script"}) {
    CAPTURE(elsewhere);
    CHECK_FALSE(contains(page, elsewhere));
  }
}

TEST_CASE("the page has three plots for wide and for narrow windows, in light and dark") {
  const TemporaryDirectory place;
  const auto page = make_bench_page(place.path() / "page.html");
  CHECK(occurrences(page, "<svg class=\"wide\"") == 3);
  CHECK(occurrences(page, "<svg class=\"narrow\"") == 3);
  CHECK(contains(page, "@media (prefers-color-scheme: dark)"));
  CHECK(contains(page, "name=\"viewport\""));
  for (const auto* text : {"Round trips by node, and of the quorum", "Acquire over time",
                           "Throughput over concurrency", "Votes", "Assertions",
                           "nodes 4 and 5 "
                           "hang",
                           "quorum (3rd of 5)", "p50&lt;1us", "does not hold"}) {
    CAPTURE(text);
    CHECK(contains(page, text));
  }
  // The fault is marked over time, in both sizes.
  CHECK(occurrences(page, "class=\"fault\"") == 2);
  // A line each for five nodes, the quorum and acquire; for median and 99 %; two for throughput.
  CHECK(occurrences(page, "<polyline") == 2 * (7 + 2 + 2));
  CHECK_FALSE(contains(page, "nan"));
  CHECK_FALSE(contains(page, "inf"));
  // 1, 2 and 4 callers.
  CHECK(contains(page, "<tr><td>4</td>"));
}

}  // namespace
}  // namespace redlock::testing
