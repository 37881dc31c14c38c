// "the disk is full: buy two" in a comment is not said.
const char* said[] = {"the disk ",
                      " is full: "
                      "buy another"};
