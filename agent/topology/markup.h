// Text inside XML: the picture and libvirt's document.
#pragma once

#include <string>
#include <string_view>

namespace vfio_agent {

// `text` as character data or as an attribute's value: printable ASCII, markup escaped.
std::string XmlText(std::string_view text);
// As the text of a comment, which must not have "--" in it.
std::string XmlComment(std::string_view text);

}  // namespace vfio_agent
