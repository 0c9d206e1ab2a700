// The fault matrix as two tables: each step of a plan by each way in which it can go wrong, and
// what becomes of the group. README.md of this folder shows the same tables and says what the words
// mean.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vfio_agent {

// A step is "<function> <op>": function 0 is the GPU, function 1 its audio function.
inline constexpr char kBindTable[] =
    R"(| step            | EBUSY | EINVAL | ENODEV | EIO  | no room | in time | late  | hangs | stuck | vanishes | taken | kill -9    |
|-----------------|-------|--------|--------|------|---------|---------|-------|-------|-------|----------|-------|------------|
| 0 note          | -     | -      | -      | -    | back    | -       | -     | -     | -     | -        | -     | bound/back |
| 0 d3cold        | back  | back   | back   | back | back    | bound   | bound | bound | bound | gone     | other | bound/back |
| 0 override      | back  | back   | back   | back | back    | bound   | bound | bound | bound | gone     | other | bound/back |
| 0 unbind        | back  | back   | back   | back | back    | bound   | bound | bound | bound | gone     | other | bound/back |
| 0 drivers_probe | back  | back   | back   | back | back    | bound   | bound | bound | bound | gone     | other | bound/back |
| 0 probe         | back  | back   | back   | back | -       | bound   | bound | bound | bound | gone     | other | bound/back |
| 1 note          | -     | -      | -      | -    | back    | -       | -     | -     | -     | -        | -     | bound/back |
| 1 d3cold        | back  | back   | back   | back | back    | bound   | bound | bound | bound | gone     | other | bound/back |
| 1 override      | back  | back   | back   | back | back    | bound   | bound | bound | bound | gone     | other | bound/back |
| 1 unbind        | back  | back   | back   | back | back    | bound   | bound | bound | bound | gone     | other | bound/back |
| 1 drivers_probe | back  | back   | back   | back | back    | bound   | bound | bound | bound | gone     | other | bound/back |
| 1 probe         | back  | back   | back   | back | -       | bound   | bound | bound | bound | gone     | other | bound/back |
| 1 node          | -     | -      | -      | -    | bound   | -       | -     | back  | -     | -        | -     | bound/back |
)";

// "restore": the second write to driver_override, once the old driver has the device.
inline constexpr char kReleaseTable[] =
    R"(| step            | EBUSY | EINVAL | ENODEV | EIO  | no room | in time | late | hangs | stuck | vanishes | taken | kill -9    |
|-----------------|-------|--------|--------|------|---------|---------|------|-------|-------|----------|-------|------------|
| 0 note          | -     | -      | -      | -    | left    | -       | -    | -     | -     | -        | -     | bound/back |
| 0 override      | left  | left   | left   | left | -       | back    | left | left  | left  | gone     | other | bound/back |
| 0 unbind        | left  | left   | left   | left | left    | back    | left | left  | left  | gone     | other | bound/back |
| 0 drivers_probe | left  | left   | left   | left | left    | back    | left | left  | left  | gone     | other | bound/back |
| 0 probe         | left  | left   | left   | left | -       | back    | left | left  | left  | gone     | other | bound/back |
| 0 restore       | left  | left   | left   | left | left    | back    | left | left  | left  | gone     | -     | bound/back |
| 0 d3cold        | left  | left   | left   | left | left    | back    | left | left  | left  | gone     | -     | bound/back |
| 1 note          | -     | -      | -      | -    | -       | -       | -    | -     | -     | -        | -     | bound/back |
| 1 override      | left  | left   | left   | left | left    | back    | left | left  | left  | gone     | other | bound/back |
| 1 unbind        | left  | left   | left   | left | left    | back    | left | left  | left  | gone     | other | bound/back |
| 1 drivers_probe | left  | left   | left   | left | left    | back    | left | left  | left  | gone     | other | bound/back |
| 1 probe         | left  | left   | left   | left | -       | back    | left | left  | left  | gone     | other | bound/back |
| 1 restore       | left  | left   | left   | left | left    | back    | left | left  | left  | gone     | -     | bound/back |
| 1 d3cold        | left  | left   | left   | left | left    | back    | left | left  | left  | gone     | -     | bound/back |
)";

struct Cell {
  int function = 0;
  std::string op;     // "unbind"
  std::string fault;  // the column
  std::string end;    // what becomes of the group
  std::string Text() const {
    return std::to_string(function) + " " + op + " by " + fault + ": " + end;
  }
};

// The cells of these columns, without those that say "-".
std::vector<Cell> CellsOf(std::string_view table, const std::vector<std::string>& faults);

}  // namespace vfio_agent
