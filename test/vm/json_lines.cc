// json-lines: prints a JSON document from stdin as one "path=value" line for each scalar.
//
// The guest's shell compares such lines without a JSON parser of its own. An array's elements are
// named by what identifies them (an address, a group, a code), so that a line says which device it
// is about wherever it stands: groups[29].members[0000:42:00.0].role=primary. Two elements of one
// name give lines of one path. Several documents in a row are printed one after the other.

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

namespace {

using nlohmann::json;

// The first of these keys that an object has names it.
constexpr const char* kNamingKeys[] = {"step", "code", "name", "id", "group", "address"};

std::string Scalar(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string Label(const json& element, size_t index) {
  if (element.is_object()) {
    for (const char* key : kNamingKeys) {
      const auto found = element.find(key);
      if (found != element.end() && !found->is_structured()) return Scalar(*found);
    }
  }
  return std::to_string(index);
}

void Print(const std::string& path, const json& value) {
  if (value.is_object()) {
    const std::string prefix = path.empty() ? "" : path + ".";
    for (const auto& [key, child] : value.items()) Print(prefix + key, child);
  } else if (value.is_array()) {
    std::cout << path << ".size=" << value.size() << "\n";
    for (size_t i = 0; i < value.size(); ++i) {
      std::string element = path;
      Print(element.append("[").append(Label(value[i], i)).append("]"), value[i]);
    }
  } else {
    std::cout << path << "=" << Scalar(value) << "\n";
  }
}

}  // namespace

int main() {
  while (std::cin >> std::ws && !std::cin.eof()) {
    json document;
    try {
      std::cin >> document;
    } catch (const json::parse_error& error) {
      std::cerr << "json-lines: " << error.what() << "\n";
      return 1;
    }
    Print("", document);
  }
}
