// Load: clients that call Allocate as fast as they are answered, and what they have seen.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace vfio_agent {

struct LoadResult {
  std::vector<double> micros;  // of each call
  double seconds = 0;
  int errors = 0;
  std::string first_error;

  void Add(const LoadResult& other);
  double CallsPerSecond() const { return static_cast<double>(micros.size()) / seconds; }
};

// The value below which the share `rank` of `values` is.
double Quantile(std::vector<double> values, double rank);

struct LoadPlan {
  std::string socket;
  int clients = 8;
  int calls = 0;                 // of each client
  std::vector<std::string> ids;  // one for each call, in turns
  bool checked = true;           // an answer that names another unit is an error
};

// Each client has a connection of its own, which is there before the first call is timed.
LoadResult RunLoad(const LoadPlan& plan);

}  // namespace vfio_agent
