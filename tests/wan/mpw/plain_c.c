/* The calls that C sees, from a program that is C and nothing else. Two sides:
     plain_c 0|1 HOST PORT                                                     */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpw.h"

enum { kBytes = 1000003 };

static int me, checks;

static void check(int good, const char* what) {
  ++checks;
  if (good) return;
  printf("side %d: wrong: %s\n", me, what);
  exit(3);
}

#define CHECK(condition) check(condition, #condition)

static char pattern(int side, int i) { return (char)(i * 31 + i / 251 + 77 * side); }

static void fill(char* buffer, int side) {
  int i;
  for (i = 0; i < kBytes; ++i) buffer[i] = pattern(side, i);
}

/* And forgets it. */
static int came(char* buffer, int side, int bytes) {
  int i, good = 1;
  for (i = 0; i < bytes; ++i) good &= buffer[i] == pattern(side, i);
  memset(buffer, 0, (size_t)bytes);
  return good;
}

static void over_channels(char* out, char* in) {
  int all[3] = {0, 1, 2}, i;
  char *outs[3], *ins[3];
  long long sizes[3], room[3];
  CHECK(MPW_SendRecv_c(out, kBytes, in, kBytes, all, 3) == 0);
  CHECK(came(in, 1 - me, kBytes));
  CHECK(MPW_SendRecv1_c(out, 12, in, 12, 3) == 0);
  CHECK(came(in, 1 - me, 12));
  MPW_splitBuf(out, kBytes, 3, outs, sizes);
  MPW_splitBuf(in, kBytes, 3, ins, room);
  CHECK(MPW_PSendRecv_c(outs, sizes, ins, room, all, 3) == 0);
  CHECK(came(in, 1 - me, kBytes));
  if (me == 0) CHECK(MPW_Send_c(out, kBytes, all, 3) == 0);
  CHECK(MPW_Recv_c(in, kBytes, all, 3) == 0);
  if (me == 1) CHECK(MPW_Send_c(out, kBytes, all, 3) == 0);
  CHECK(came(in, 1 - me, kBytes));
  CHECK(MPW_DSendRecv_c(out, 1000 + me, in, kBytes, all, 3) == 1001 - me);
  CHECK(came(in, 1 - me, 1001 - me));
  CHECK(MPW_Cycle(out, 500, in, 500, all + me, 1, all + 1 - me, 1) == 0);
  CHECK(came(in, 1 - me, 500));
  for (i = 0; i < 3; ++i) MPW_Barrier(i);
  MPW_CloseChannels(all, 3);
  MPW_ReOpenChannels(all, 3);
  CHECK(MPW_SendRecv_c(out, kBytes, in, kBytes, all, 3) == 0);
  CHECK(came(in, 1 - me, kBytes));
}

static void over_a_path(char* host, int port, char* out, char* in) {
  int exchange, idle;
  const int path = MPW_CreatePath_c(host, port, 2);
  CHECK(path >= 0);
  CHECK(MPW_PathSendRecv_c(out, kBytes, in, kBytes, path) == 0);
  CHECK(came(in, 1 - me, kBytes));
  CHECK(MPW_PathSend_c(out, 9, path) == 0 && MPW_PathRecv_c(in, 9, path) == 0);
  CHECK(came(in, 1 - me, 9));
  CHECK(MPW_PathDSendRecv_c(out, 5, in, kBytes, path) == 5);
  exchange = MPW_ISendRecv(out, kBytes, in, kBytes, path);
  (void)MPW_Has_NBE_Finished(exchange);
  MPW_Wait(exchange);
  CHECK(came(in, 1 - me, kBytes));
  CHECK(MPW_DestroyPath(path) == 0);
  idle = MPW_CreatePathWithoutConnect_c(host, port + 5, 1);
  CHECK(idle == path);
  CHECK(MPW_DestroyPath(idle) == 0);
}

int main(int argc, char** argv) {
  static char out[kBytes], in[kBytes];
  char* hosts[3];
  int ports[3], i, base;
  if (argc < 4) {
    printf("usage: plain_c 0|1 HOST PORT\n");
    return 2;
  }
  me = atoi(argv[1]);
  base = atoi(argv[3]);
  fill(out, me);
  for (i = 0; i < 3; ++i) {
    hosts[i] = argv[2];
    ports[i] = base + i;
  }
  MPW_setChunkSize(32768, 65536);
  CHECK(MPW_Init_c(hosts, ports, 3) == 0);
  CHECK(MPW_Init1_c(argv[2], base + 10) == 0);
  CHECK(MPW_NumChannels() == 4);
  over_channels(out, in);
  over_a_path(argv[2], base + 20, out, in);
  CHECK(MPW_Finalize() == 0);
  printf("side %d: C, %d checks passed\n", me, checks);
  return 0;
}
