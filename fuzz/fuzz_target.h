#pragma once

#include <cstddef>
#include <cstdint>

// What libFuzzer calls with every input, and corpus_main.cc where there is no libFuzzer. A crash, a sanitizer's report
// or an abort is a finding; whatever else happens is the input's own affair.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
