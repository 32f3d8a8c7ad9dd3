// Lays out what a rendezvous says of its jobs, for people. Pure.
#ifndef MUSTER_LAUNCHER_STATUS_TABLE_H_
#define MUSTER_LAUNCHER_STATUS_TABLE_H_

#include <string>
#include <vector>

#include "rendezvous/client/admin_client.h"

namespace muster::launcher {

// Columns are as wide as their widest cell and two blanks apart; the first row is the header. Of
// what others have named no control character is obeyed: it is shown.
std::string Table(std::vector<std::vector<std::string>> rows);

// One line for each job, one for each of its nodes below: its group rank, or whether it waits for a
// round or is a spare, and how long ago its lease was renewed.
std::string StatusPage(const std::vector<rendezvous::JobReport>& jobs);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_STATUS_TABLE_H_
