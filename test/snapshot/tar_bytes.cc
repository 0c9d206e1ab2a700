#include "test/snapshot/tar_bytes.h"

#include <numeric>

#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kChecksumAt = 148;

void Put(std::string& block, size_t at, const std::string& text) {
  block.replace(at, text.size(), text);
}

}  // namespace

std::string TarBytes(const TarMember& member) {
  std::string block(kBlock, '\0');
  const size_t size = member.claimed_bytes == 0 ? member.text.size() : member.claimed_bytes;
  Put(block, 0, member.name.substr(0, 100));
  Put(block, 100, "0000644");
  Put(block, 108, "0000000");
  Put(block, 116, "0000000");
  Put(block, 124, absl::StrFormat("%011o", size));
  Put(block, 136, "00000000000");
  Put(block, kChecksumAt, "        ");
  block[156] = member.type;
  Put(block, 157, member.target.substr(0, 100));
  Put(block, 257, std::string("ustar\00000", 8));
  const unsigned sum = std::accumulate(block.begin(), block.end(), 0U, [](unsigned total, char c) {
    return total + static_cast<unsigned char>(c);
  });
  Put(block, kChecksumAt, absl::StrFormat("%06o", sum) + std::string("\0 ", 2));
  std::string bytes = block + member.text;
  bytes.resize((bytes.size() + kBlock - 1) / kBlock * kBlock, '\0');
  return bytes;
}

std::string TarEnd() { return std::string(2 * kBlock, '\0'); }

}  // namespace vfio_agent
