#pragma once

#include "orchestrator/http/exchange.h"

namespace pawl {

// The page that was built from web/, to a request for a path that is not /api/.
HttpReply PageReply(const HttpRequest& request);

}  // namespace pawl
