// Tests of the program, which are linked without those of wan/net, put it between two sites.
#include "tests/wan/net/proxy.cpp"
