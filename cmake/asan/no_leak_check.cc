// On AArch64 a search for leaks walks through the whole address space: 4 s at every end of a program, and tests start
// thousands. Test programs search their own process; what they start does not. ASAN_OPTIONS=detect_leaks=1 overrules
// it.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
