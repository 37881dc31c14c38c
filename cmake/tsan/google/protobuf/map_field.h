// Under ThreadSanitizer protobuf's header gives every map two more members, which Debian's library does not know of: it
// would read the wrong ones, as MessageDifferencer and the JSON printer do. This one is found first, and hides the
// sanitizer from protobuf's, but not from the standard library.
#pragma once
#include <memory>
#pragma push_macro("__SANITIZE_THREAD__")
#undef __SANITIZE_THREAD__
#include_next <google/protobuf/map_field.h>
#pragma pop_macro("__SANITIZE_THREAD__")
