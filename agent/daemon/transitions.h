// Transitions: says what is new in a picture, and nothing twice.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/daemon/event.h"
#include "agent/session.h"
#include "deviceplugin/kubelet/plugin_event.h"
#include "deviceplugin/offer/offer.h"

namespace vfio_agent {

class Transitions {
 public:
  // The events that `picture` deserves after the ones before it: a group whose verdict or reasons
  // changed, a device that became odd, a warning that is new. Unchanged things give no event.
  std::vector<Event> Compare(const Picture& picture, const std::vector<std::string>& notes);

  // The events for units that are offered and no longer healthy, or healthy again, or unhealthy
  // for another reason.
  static std::vector<Event> CompareOffers(const std::vector<Offer>& before,
                                          const std::vector<Offer>& now);

  // False for a failed registration that says what the resource's last one said.
  bool IsNews(const PluginEvent& event);

 private:
  // Keeps `event`'s line under `key`; true where it differs from the last one there.
  bool IsNew(const std::string& key, const Event& event);

  // Events for groups that were told of and are not there any more.
  void AddGone(const NodeFacts& facts, const std::set<std::string>& present,
               std::vector<Event>& events);

  std::map<std::string, PciAddress> physical_;  // of groups that are virtual functions
  std::map<std::string, size_t> last_;          // hashes of lines: there may be thousands of groups
};

}  // namespace vfio_agent
