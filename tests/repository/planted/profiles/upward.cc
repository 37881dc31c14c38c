// Planted: the include-direction test must name this line, and the next one.
#include <cuda.h>

#include "worker/build/builder.h"
