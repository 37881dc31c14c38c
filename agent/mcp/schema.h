#pragma once

#include <string>

#include "agent/mcp/json.h"

namespace pawl {

// What is wrong with a value by a JSON schema, for a model to correct: "timeoutSeconds: expected at most 45". Empty:
// nothing. Knows the keywords that the schemas of agent/tools use: type, properties, required, additionalProperties,
// items, enum, minimum, maximum, minLength, maxLength, maxItems, maxProperties. Others are passed over.
std::string SchemaMistake(const Json& value, const Json& schema);

// The arguments with whole numbers written as texts, and texts of whole numbers as numbers, where the schema's
// properties ask for the other: models and shells mix them up ("campaign": 7). A whole number written as a float (8.0)
// becomes an integer wherever one is asked for.
Json WithTypesOf(Json arguments, const Json& schema);

}  // namespace pawl
