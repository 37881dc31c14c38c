#pragma once

#include <string>

#include "db/store.h"

namespace pawl {

// The statement that lists a page of iterations. It gives the column summary, and has the parameters campaign, verdict,
// variable, finding, then number and speedup of the place, then limit; those of filters that are not set are not used.
std::string IterationSql(const IterationQuery& query);

// What orders by speedup: a number always.
double SpeedupKey(double speedup);

}  // namespace pawl
