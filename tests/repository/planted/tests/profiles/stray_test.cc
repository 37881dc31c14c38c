#include "worker/build/builder.h"
