// The one place where the code of toml++ is compiled.
#define TOML_IMPLEMENTATION
#include "base/toml/toml.h"
