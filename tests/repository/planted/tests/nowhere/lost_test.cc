#include "profiles/gates.h"
