# cmake -DBYTES=<file> -DSOURCE=<file.cc> -P: <file>'s bytes as a function of the program.
file(READ "${BYTES}" bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE "${SOURCE}" "#include \"deviceplugin/grpc/descriptors.h\"

namespace vfio_agent {

std::string_view ServedFiles() {
  static constexpr unsigned char kBytes[] = {${bytes}};
  return {reinterpret_cast<const char*>(kBytes), sizeof(kBytes)};
}

}  // namespace vfio_agent
")
