#include <algorithm>

#include "absl/strings/str_format.h"
#include "agent/topology/drawing.h"
#include "agent/topology/markup.h"
#include "agent/topology/render.h"

namespace vfio_agent {
namespace {

constexpr int kMargin = 16;
constexpr int kRow = 46;         // from one device to the next
constexpr int kBox = 36;         // height of a box
constexpr int kHead = 30;        // a NUMA node's title
constexpr int kLevel = 240;      // from one level of bridges to the next
constexpr int kBridge = 140;     // width of a bridge's box
constexpr int kDevice = 330;     // width of a device's
constexpr size_t kLetters = 46;  // that fit into a device's box

int Depth(const Drawn& drawn) {
  int depth = 0;
  for (const Drawn& child : drawn.children) depth = std::max(depth, Depth(child) + 1);
  return depth;
}

int Leaves(const Drawn& drawn) {
  if (drawn.children.empty()) return 1;
  int leaves = 0;
  for (const Drawn& child : drawn.children) leaves += Leaves(child);
  return leaves;
}

std::string Cut(const std::string& text, size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 2) + "..";
}

class Painter {
 public:
  std::string Run(const std::vector<Drawn>& nodes) {
    int levels = 0, rows = 0;
    for (const Drawn& node : nodes) {
      levels = std::max(levels, Depth(node) - 1);
      rows += Leaves(node);
    }
    device_x_ = 2 * kMargin + levels * kLevel;
    width_ = device_x_ + kDevice + 2 * kMargin;
    const int legend = kHead + kBox;
    const int height =
        kMargin + rows * kRow + static_cast<int>(nodes.size()) * (kHead + kMargin) + legend;
    Open(height);
    int y = kMargin;
    for (const Drawn& node : nodes) y = Panel(node, y);
    Legend(y);
    return text_ + "</svg>\n";
  }

 private:
  void Open(int height) {
    text_ = absl::StrFormat(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d "
        "%d\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n"
        "<title>PCI topology</title>\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
        width_, height, width_, height);
  }

  void Rect(int x, int y, int width, int height, const char* fill, const char* stroke) {
    text_ += absl::StrFormat(
        "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\" fill=\"%s\" "
        "stroke=\"%s\"/>\n",
        x, y, width, height, fill, stroke);
  }

  void Text(int x, int y, const std::string& text, const char* fill, const char* more = "") {
    text_ += absl::StrFormat("<text x=\"%d\" y=\"%d\" fill=\"%s\"%s>%s</text>\n", x, y, fill, more,
                             XmlText(text));
  }

  // From the right edge of a box to the left edge of one below it.
  void Line(int from_x, int from_y, int to_x, int to_y, const Drawn& below) {
    const int turn = from_x + 16;
    text_ += absl::StrFormat(
        "<path d=\"M%d %dH%dV%dH%d\" fill=\"none\" stroke=\"%s\" stroke-width=\"%s\"/>\n", from_x,
        from_y, turn, to_y, to_x, below.open ? "#b5382a" : "#9aa1ab", below.open ? "2" : "1");
    if (below.by.empty()) return;
    Text(turn + 4, to_y - 4, below.by, below.open ? "#b5382a" : "#4b5563", " font-size=\"9\"");
  }

  void Box(const Drawn& drawn, int x, int y) {
    const bool device = drawn.kind == Drawn::Kind::kDevice;
    const char* const ink = device ? "#ffffff" : "#111827";
    Rect(x, y, device ? kDevice : kBridge, kBox, device ? ColourOf(drawn.verdict) : "#ffffff",
         device ? "none" : "#9aa1ab");
    const int first = drawn.detail.empty() ? 22 : 15;
    Text(x + 8, y + first, drawn.title, ink, device ? " font-weight=\"bold\"" : "");
    if (drawn.detail.empty()) return;
    Text(x + 8, y + 29, Cut(drawn.detail, device ? kLetters : 22), ink, " font-size=\"11\"");
  }

  struct Spot {
    int middle = 0;  // of the box
    int x = 0;       // its left edge
    int next = 0;    // where the next row begins
  };

  Spot Subtree(const Drawn& drawn, int level, int y) {
    Spot spot{.x = drawn.kind == Drawn::Kind::kDevice ? device_x_ : 2 * kMargin + level * kLevel,
              .next = drawn.children.empty() ? y + kRow : y};
    std::vector<Spot> spots;
    for (const Drawn& child : drawn.children) {
      spots.push_back(Subtree(child, level + 1, spot.next));
      spot.next = spots.back().next;
    }
    spot.middle = spots.empty() ? y + kRow / 2 : (spots.front().middle + spots.back().middle) / 2;
    for (size_t i = 0; i < spots.size(); ++i) {
      Line(spot.x + kBridge, spot.middle, spots[i].x, spots[i].middle, drawn.children[i]);
    }
    Box(drawn, spot.x, spot.middle - kBox / 2);
    return spot;
  }

  int Panel(const Drawn& node, int y) {
    const int height = kHead + Leaves(node) * kRow;
    Rect(kMargin, y, width_ - 2 * kMargin, height, "#f3f4f6", "#d1d5db");
    Text(2 * kMargin, y + 20, node.title, "#111827", " font-size=\"14\" font-weight=\"bold\"");
    int row = y + kHead - 4;
    for (const Drawn& bridge : node.children) row = Subtree(bridge, 0, row).next;
    return y + height + kMargin;
  }

  void Legend(int y) {
    int x = kMargin;
    for (const VerdictColour& entry : VerdictColours()) {
      Rect(x, y, 14, 14, entry.colour, "none");
      Text(x + 20, y + 12, entry.words, "#111827");
      x += 40 + 7 * static_cast<int>(std::string_view(entry.words).size());
    }
    Text(kMargin, y + 34, "red line: the port above does not keep its peers apart (ACS)",
         "#b5382a");
  }

  std::string text_;
  int device_x_ = 0;
  int width_ = 0;
};

}  // namespace

std::string TopologySvg(const Topology& topology, const NodeFacts& facts) {
  return Painter().Run(DrawTopology(topology, facts));
}

}  // namespace vfio_agent
