// SPDX-License-Identifier: MIT
// A plot as SVG: lines over an x and a y axis, each linear or logarithmic. Colours are classes of
// the page's style sheet, so that they follow its scheme.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::cli {

struct PlotAxis {
  std::string title;
  double low = 0;
  double high = 1;
  bool logarithmic = false;
  std::vector<std::pair<double, std::string>> ticks{};
};

struct PlotLine {
  enum class Shape { line, dots, line_with_dots };
  std::string name;
  std::string style;  ///< classes of the style sheet: "s0", "ink dash"
  std::vector<std::pair<double, double>> points{};
  Shape shape = Shape::line;
};

/// A moment on the x axis, with words beside it.
struct PlotMark {
  double x = 0;
  std::string text;
};

struct Plot {
  std::string description;  ///< for who does not see it
  PlotAxis x;
  PlotAxis y;
  std::vector<PlotLine> lines;
  std::optional<PlotMark> mark;
};

/// The plot twice, for wide and narrow windows (the classes say which), so that its text is never
/// scaled; before them its legend.
[[nodiscard]] std::string draw(const Plot& plot);

/// Ticks for a linear axis from 0: about five, at 1, 2 or 5 times a power of ten.
[[nodiscard]] PlotAxis linear_axis(std::string title, double high);
/// Ticks for times in milliseconds, at powers of ten.
[[nodiscard]] PlotAxis time_axis(std::string title, double low, double high);

/// With the five characters that HTML and SVG give a meaning replaced.
[[nodiscard]] std::string escaped(std::string_view text);

}  // namespace redlock::cli
