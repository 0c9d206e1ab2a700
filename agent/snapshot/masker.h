// Masker: other names for what is private, the same for the same.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace vfio_agent {

// Numbers in the order in which things come: what is masked already gets the same number again, so
// that a snapshot of a snapshot has the same bytes. A hash could be tried out on a list of names.
class Masker {
 public:
  // "masked-0001". One of these is itself: beside names that are kept, what is masked stands in
  // another order than it did before.
  std::string Word(std::string_view word);

  // Hexadecimal digits of any grouping (MAC and IP addresses, GUIDs, UUIDs, ids of containers): as
  // many, grouped alike. All zero and all ones are nobody's and stay.
  std::string Hex(std::string_view digits);

  // Hex() for each MAC address, UUID and container's id within `text`.
  std::string Ids(std::string_view text);

 private:
  size_t Number(const std::string& key);

  std::map<std::string, size_t> numbers_;
  std::map<size_t, size_t> last_;  // by the count of digits; 0: of words
};

}  // namespace vfio_agent
