// SPDX-License-Identifier: MIT
#include "cli/bench/plot.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

namespace redlock::cli {
namespace {

struct PlotSize {
  const char* name;
  double width;
  double height;
};
constexpr PlotSize wide{"wide", 800, 320};
constexpr PlotSize narrow{"narrow", 340, 280};

constexpr double left_margin = 56;
constexpr double right_margin = 26;
constexpr double top_margin = 32;
constexpr double bottom_margin = 42;

double place_on(const PlotAxis& axis, double value) {
  const double bounded = std::clamp(value, axis.low, axis.high);
  if (!axis.logarithmic) return (bounded - axis.low) / (axis.high - axis.low);
  return std::log(bounded / axis.low) / std::log(axis.high / axis.low);
}

/// Draws into one size.
class Canvas {
 public:
  Canvas(const Plot& plot, PlotSize size) : plot_(plot), size_(size) {
    svg_ = fmt::format(
        "<svg class=\"{0}\" viewBox=\"0 0 {1} {2}\" width=\"{1}\" height=\"{2}\" role=\"img\" "
        "aria-label=\"{3}\">\n",
        size.name, size.width, size.height, escaped(plot.description));
  }

  std::string finish() && {
    draw_axes();
    if (plot_.mark) draw_mark(*plot_.mark);
    for (const auto& line : plot_.lines) draw_line(line);
    return std::move(svg_) + "</svg>\n";
  }

 private:
  [[nodiscard]] double x(double value) const {
    return left_margin + place_on(plot_.x, value) * (size_.width - left_margin - right_margin);
  }
  [[nodiscard]] double y(double value) const {
    return size_.height - bottom_margin -
           place_on(plot_.y, value) * (size_.height - top_margin - bottom_margin);
  }

  void draw_axes() {
    for (const auto& [value, text] : plot_.y.ticks) {
      svg_ += fmt::format(
          "<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
          "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
          left_margin, size_.width - right_margin, y(value), y(value), left_margin - 6,
          y(value) + 4, escaped(text));
    }
    for (const auto& [value, text] : plot_.x.ticks) {
      svg_ += fmt::format(
          "<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
          "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
          x(value), x(value), top_margin, size_.height - bottom_margin, x(value),
          size_.height - bottom_margin + 16, escaped(text));
    }
    svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                        size_.width - right_margin, size_.height - 6, escaped(plot_.x.title));
    svg_ += fmt::format("<text x=\"4\" y=\"12\">{}</text>\n", escaped(plot_.y.title));
  }

  void draw_mark(const PlotMark& mark) {
    const double at = x(mark.x);
    const bool before = at > size_.width / 2 + 20;
    svg_ += fmt::format(
        "<rect class=\"fault\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>"
        "<line class=\"mark\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text class=\"mark-text\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
        at, top_margin, size_.width - right_margin - at, size_.height - top_margin - bottom_margin,
        at, at, top_margin, size_.height - bottom_margin, before ? size_.width - right_margin : at,
        top_margin - 8, before ? "end" : "start", escaped(mark.text));
  }

  void draw_line(const PlotLine& line) {
    if (line.shape != PlotLine::Shape::dots && line.points.size() > 1) {
      svg_ += fmt::format("<polyline class=\"{}\" points=\"", line.style);
      for (const auto& [px, py] : line.points) svg_ += fmt::format("{:.1f},{:.1f} ", x(px), y(py));
      svg_ += fmt::format("\"><title>{}</title></polyline>\n", escaped(line.name));
    }
    if (line.shape == PlotLine::Shape::line && line.points.size() > 1) return;
    for (const auto& [px, py] : line.points) {
      svg_ += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"/>",
                          line.style, x(px), y(py));
    }
    svg_ += "\n";
  }

  const Plot& plot_;
  PlotSize size_;
  std::string svg_;
};

}  // namespace

std::string draw(const Plot& plot) {
  std::string text = "<ul class=\"legend\">\n";
  for (const auto& line : plot.lines) {
    text += fmt::format(
        "<li><svg width=\"24\" height=\"10\" aria-hidden=\"true\">"
        "<line class=\"{}\" x1=\"1\" x2=\"23\" y1=\"5\" y2=\"5\"/></svg>{}</li>\n",
        line.style, escaped(line.name));
  }
  text += "</ul>\n";
  for (const auto size : {wide, narrow}) text += Canvas(plot, size).finish();
  return text;
}

PlotAxis linear_axis(std::string title, double high) {
  const double rough = std::max(high, 1e-9) / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power * 10;
  for (const double times : {5.0, 2.0, 1.0}) {
    if (rough <= power * times) step = power * times;
  }
  PlotAxis axis{.title = std::move(title), .high = std::ceil(high / step) * step, .ticks = {}};
  for (double at = 0; at <= axis.high + step / 2; at += step) {
    axis.ticks.emplace_back(at, fmt::format("{:.6g}", at));
  }
  return axis;
}

PlotAxis time_axis(std::string title, double low, double high) {
  PlotAxis axis{.title = std::move(title), .logarithmic = true, .ticks = {}};
  axis.low = std::pow(10, std::floor(std::log10(std::max(low, 1e-3))));
  axis.high = std::pow(10, std::ceil(std::log10(std::max(high, axis.low * 1.01))));
  for (double at = axis.low; at <= axis.high * 1.01; at *= 10) {
    axis.ticks.emplace_back(at, fmt::format("{:.6g}", at));
  }
  return axis;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

}  // namespace redlock::cli
