// What `list` shows, as rows. Pure.
#pragma once

#include "agent/session.h"
#include "agent/text/table.h"

namespace vfio_agent {

struct ListWish {
  bool all = false;   // what nobody selected, too
  bool wide = false;  // more columns
};

// A plan for each function that the node's plan has not: it is in no group and nobody selected it.
std::vector<GroupPlan> PlansOfUngrouped(const Picture& picture);

// Both by group number, those without a group last; devices of a group by address. The bridges of a
// group are one row, unless all or wide was asked for.
TableRows DeviceRows(const Picture& picture, const ListWish& wish);
// Functions without a group are among the devices with `all`.
TableRows GroupRows(const Picture& picture, const ListWish& wish);
// What a unit is: its addresses, one or several.
std::string PartsText(const Unit& unit);
// "23", "23 +11" for a unit of twelve groups, or all of them.
std::string GroupsCell(const std::optional<int>& group, const std::vector<int>& groups, bool wide);
// Each unit, with the pods that have it; wide: with all addresses and groups of a bundle.
TableRows ResourceRows(const Picture& picture, const ListWish& wish);

// Which columns of these may go where there is little room.
std::vector<std::string_view> SpareColumns();
// Green is well, yellow will change, red needs somebody, dim is nobody's business.
Style StateStyle(std::string_view heading, std::string_view cell);

}  // namespace vfio_agent
