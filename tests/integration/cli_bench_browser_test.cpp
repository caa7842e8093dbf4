// SPDX-License-Identifier: MIT
// The page of `redlock bench --report` in a real browser, which measures it: nothing is cut off or
// wider than the window, and text and lines have contrast, in light and dark, wide and narrow. Says
// so, and tests nothing, where there is no Chromium.
#include <cstdio>
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "cli_bench_page.hpp"
#include "support/temporary_directory.hpp"
#include "support/text.hpp"

namespace redlock::testing {
namespace {

namespace fs = std::filesystem;

std::string find_browser() {
  for (const auto* path : {"/usr/bin/chromium", "/usr/bin/chromium-headless-shell",
                           "/usr/bin/chromium-browser", "/usr/bin/google-chrome"}) {
    if (fs::exists(path)) return path;
  }
  return {};
}

/// Runs in the page, and tells the frame around it what it found.
constexpr auto* measuring = R"js(<script>
const light = text => {
  const parts = text.match(/[\d.]+/g).slice(0, 3).map(part => {
    const c = part / 255;
    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
};
const contrast = (a, b) => {
  const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
};
const paper = getComputedStyle(document.body).backgroundColor;
const shown = [...document.querySelectorAll('body *')].filter(e => e.getClientRects().length);
const is = (e, ...names) => names.includes(e.tagName.toLowerCase());
const least = (elements, colour) =>
  Math.min(21, ...elements.map(e => contrast(getComputedStyle(e)[colour], paper)));
const plots = shown.filter(e => e.matches('svg.wide, svg.narrow'));
const svg_text = shown.filter(e => is(e, 'text'));
const inside = e => {
  const inner = e.getBoundingClientRect();
  const outer = e.ownerSVGElement.getBoundingClientRect();
  return inner.left >= outer.left - 1 && inner.right <= outer.right + 1 &&
         inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
};
parent.postMessage(JSON.stringify({
  window: innerWidth,
  width: document.documentElement.scrollWidth,
  dark: matchMedia('(prefers-color-scheme: dark)').matches,
  paper: light(paper),
  plots: plots.map(e => e.getAttribute('class')),
  text: least(shown.filter(e => is(e, 'p', 'h1', 'h2', 'td', 'th', 'li')), 'color'),
  plotted_text: least(svg_text, 'fill'),
  lines: least(shown.filter(e => is(e, 'polyline')), 'stroke'),
  lengths: shown.filter(e => is(e, 'polyline')).map(e => e.getTotalLength()),
  cut_off: svg_text.filter(e => !inside(e)).map(e => e.textContent),
  smallest: Math.min(...svg_text.map(e => e.getBoundingClientRect().height)),
}), '*');
</script>)js";

struct Window {
  int width;
  bool dark;
};

/// Around the page: a window of this width, which may be narrower than a browser's own.
std::string frame(int width) {
  return fmt::format(
      "<body><iframe src=\"page.html\" width=\"{}\" height=\"2000\" style=\"border: 0\"></iframe>"
      "<script>onmessage = e => document.body.setAttribute('data-seen', e.data);</script></body>",
      width);
}

nlohmann::json seen_in(const std::string& browser, const fs::path& place, const Window& window) {
  const auto file = place / "frame.html";
  std::ofstream(file) << frame(window.width);
  Running browsing({"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                    "--hide-scrollbars", "--user-data-dir=" + (place / "profile").string(),
                    "--window-size=1100,2100", "--virtual-time-budget=2000",
                    fmt::format("--blink-settings=preferredColorScheme={}", window.dark ? 0 : 1),
                    "--dump-dom", "file://" + file.string()},
                   {{"HOME", place.string()}, {"XDG_RUNTIME_DIR", place.string()}}, browser);
  const auto finished = browsing.wait();
  REQUIRE_MESSAGE(finished.status == 0, finished.err);
  const std::string attribute = "data-seen=\"";
  const auto at = finished.out.find(attribute);
  REQUIRE_MESSAGE(at != std::string::npos, finished.out);
  auto text = finished.out.substr(at + attribute.size());
  text.resize(text.find('"'));
  for (const auto& [escape, c] : {std::pair{"&quot;", "\""}, std::pair{"&amp;", "&"}}) {
    for (auto found = text.find(escape); found != std::string::npos; found = text.find(escape)) {
      text.replace(found, std::string(escape).size(), c);
    }
  }
  return nlohmann::json::parse(text);
}

TEST_CASE("a browser shows the page readably, in light and dark, wide and narrow") {
  const auto browser = find_browser();
  if (browser.empty()) {
    std::puts("SKIPPED: there is no Chromium (on Debian: apt install chromium)");
    return;
  }
  const TemporaryDirectory place;
  const auto file = place.path() / "page.html";
  auto page = make_bench_page(file);
  page.replace(page.rfind("</body>"), 0, measuring);
  std::ofstream(file) << page;
  for (const auto& window : {Window{1000, false}, Window{1000, true}, Window{400, true}}) {
    const auto seen = seen_in(browser, place.path(), window);
    CAPTURE(seen.dump());
    CHECK(seen["window"] == window.width);
    CHECK(seen["width"] <= seen["window"]);
    CHECK(seen["dark"] == window.dark);
    CHECK((seen["paper"].get<double>() < 0.1) == window.dark);
    const std::string which = window.width == 400 ? "narrow" : "wide";
    CHECK(seen["plots"] == nlohmann::json{which, which, which});
    CHECK(seen["text"].get<double>() >= 4.5);
    CHECK(seen["plotted_text"].get<double>() >= 4.5);
    CHECK(seen["lines"].get<double>() >= 3);
    CHECK(seen["lengths"].size() == 11);
    for (const auto& length : seen["lengths"]) CHECK(length.get<double>() > 50);
    CHECK(seen["cut_off"].empty());
    CHECK(seen["smallest"].get<double>() >= 11);
  }
}

}  // namespace
}  // namespace redlock::testing
