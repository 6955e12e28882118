/* For programs that say #include "MPWide.h": the same calls (mpw.h), and what they may rely on besides. A new program
   includes mpw.h, which leaves its namespaces alone. */
#ifndef MAKI_WAN_NET_MPWIDE_H
#define MAKI_WAN_NET_MPWIDE_H

#define PacingMode 1
#define MPW_PacingMode 1
#define OptimizeStreamCount 1

#include "mpw.h"

#ifdef __cplusplus
#include <cassert>
#include <iostream>
using namespace std;
#endif

#endif
