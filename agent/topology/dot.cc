#include "absl/strings/str_format.h"
#include "agent/topology/drawing.h"
#include "agent/topology/render.h"

namespace vfio_agent {
namespace {

// A string of the DOT language; `text` is printable.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string LabelOf(const Drawn& drawn) {
  std::string label = Quoted(drawn.title);
  if (drawn.detail.empty()) return label;
  label.pop_back();
  return label + "\\n" + Quoted(drawn.detail).substr(1);
}

class Graph {
 public:
  std::string Run(const std::vector<Drawn>& nodes) {
    text_ =
        "digraph topology {\n"
        "  rankdir=LR;\n"
        "  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"sans-serif\"];\n"
        "  edge [arrowhead=none, fontname=\"sans-serif\", fontsize=10];\n";
    for (size_t i = 0; i < nodes.size(); ++i) {
      text_ +=
          absl::StrFormat("  subgraph cluster_%d {\n    label=%s;\n", i, Quoted(nodes[i].title));
      for (const Drawn& child : nodes[i].children) Add(child);
      text_ += "  }\n";
    }
    return text_ + "}\n";
  }

 private:
  // Returns the node's number.
  int Add(const Drawn& drawn) {
    const int number = next_++;
    text_ += absl::StrFormat("    n%d [label=%s", number, LabelOf(drawn));
    if (drawn.kind == Drawn::Kind::kDevice) {
      text_ += absl::StrFormat(", fillcolor=\"%s\", fontcolor=white", ColourOf(drawn.verdict));
    }
    text_ += "];\n";
    for (const Drawn& child : drawn.children) {
      const int below = Add(child);
      text_ += absl::StrFormat("    n%d -> n%d [label=%s%s];\n", number, below, Quoted(child.by),
                               child.open ? ", color=\"#b5382a\", penwidth=2" : "");
    }
    return number;
  }

  std::string text_;
  int next_ = 0;
};

}  // namespace

std::string TopologyDot(const Topology& topology, const NodeFacts& facts) {
  return Graph().Run(DrawTopology(topology, facts));
}

}  // namespace vfio_agent
