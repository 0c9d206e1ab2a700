// TarBytes: an archive byte by byte, so that it can be a wrong one.
#pragma once

#include <string>

namespace vfio_agent {

// One member of a tar archive in the old format of POSIX.
struct TarMember {
  std::string name;
  std::string text;
  char type = '0';  // '0' file, '1' hard link, '2' link, '3' character device, '5' directory
  std::string target = "";   // of links
  size_t claimed_bytes = 0;  // where not the text's own
};

// The member's header and blocks.
std::string TarBytes(const TarMember& member);
// The two blocks at the end.
std::string TarEnd();

}  // namespace vfio_agent
