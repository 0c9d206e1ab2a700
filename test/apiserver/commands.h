// The command language of fake-apiserver.
#pragma once

#include <iosfwd>
#include <string>

namespace vfio_agent {

// Serves on `host`, writes the files token and ca.crt into `dir`, prints
// {"ready":true,"server":URL} and runs the commands of `in` until "quit" or its end:
//
//   node NAME [KEY=VALUE...]          makes a Node with these labels
//   label NAME KEY=VALUE|KEY-         sets or removes a label
//   get PATH                          the object, or null
//   list PATH                         the objects of a collection
//   put PATH JSON                     creates or replaces an object
//   merge PATH JSON                   a merge patch of the whole object
//   delete PATH
//   wait PATH POINTER VALUE [SECONDS] until the text at the JSON pointer is that; "-" for none
//   fault JSON                        {"method","path","query","watch","times","code",
//                                     "retry_after","delay_ms","hang","cut"}, as ApiFault has them
//   clear                             no more faults
//   deny VERB RESOURCE / allow VERB RESOURCE
//   rotate token|ca                   and the files with it
//   down / up / cut / end-watches / compact / bookmarks
//   count METHOD PATH                 requests so far that begin so
//   quit
//
// Each gives one JSON line with "ok" and, where that is false, "error". Returns the exit code: 1
// where a command failed.
int RunApiCommands(const std::string& host, const std::string& dir, std::istream& in,
                   std::ostream& out);

}  // namespace vfio_agent
