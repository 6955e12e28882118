/* MPWide's calls over Maki's paths, for C++ and C: a program written for MPWide is compiled again, linked with
   libmaki_wan.a, and runs. Both sides have to be.

   CHANNELS AND PATHS. A channel is a lane to one other program, numbered from 0 in the order of making. A message over n
   channels is cut into n parts that differ by one byte at most, and arrives whole at a receive over as many channels;
   channels to several hosts scatter and gather. A path is a set of channels to one host, with a number of its own.
   All channels to one program share a bundle of TCP streams, encrypted, that survives the loss of its connections;
   a part is a message, so that the n-th receive of a channel takes its n-th send, which has to be of the same size.
   Parts of no bytes are not sent. A null pointer in place of an array of channels stands for channels 0, 1, ...
   Two threads may use one path at once where one sends and the other receives.

   PORTS. One open port is enough: the smallest server-side port of the channels to a host is listened on and called.
   The others are names by which channels of the two sides find each other (equal ports; where the sides have none in
   common, because one was forwarded, the first to the first). Where channels to one host end at several programs, each
   program's smallest port is open. Client-side ports are accepted and unused ('local_ports' below is for firewalls).

   WHO CALLS. A host "0" or "0.0.0.0" (or empty) waits to be called. Any other host is called and waited for at the same time:
     one side waits, the other names it   the usual case: the second calls the first
     both name each other                 both listen (where the port can be had) and both call; of the paths that stand
                                          one is kept, chosen by the side that drew the lower random number. It is enough
                                          that one of the two can be reached, and both may be on one host
     both wait                            an error after 'wait' seconds that says so. On one host the second finds the
                                          port taken and calls whoever has it
     MPW_ConnectPath(path, false)         calls only, and gives up after 'connect_timeout'
   Whoever starts first waits for the other, 'wait' seconds at most. Many hosts are joined at the same time.

   ENVIRONMENT
     MAKI_WAN_KEY       key file, the same on both sides ('maki wan keygen FILE' makes one). Several with ':' between:
                        calling uses the first, listening admits any
     MAKI_WAN_INSECURE  1 instead of a key: no encryption, and anyone may call. Logged
     MAKI_WAN_SETTINGS  "name=value,name=value", or a file with a [path] table as 'maki wan bench' prints: streams, window,
                        send_chunk, receive_chunk, pacing, congestion, patience and the other keys of 'maki wan', and
                        wait (time until a peer that does not come is an error, 600 s), listen (address to listen on)

   ERRORS. Calls that move data or initialize print what is wrong and end the program with status 1: a program written
   for MPWide, where most of them return nothing, would go on with what is not there. MPW_SetErrorHandler changes that;
   then they return a negative value. MPW_CreatePath, MPW_CreatePathWithoutConnect, MPW_ConnectPath and MPW_DestroyPath
   print and return a negative value always. After an error buffers of that call may be in use until MPW_Finalize. */
#ifndef MAKI_WAN_NET_MPW_H
#define MAKI_WAN_NET_MPW_H

#ifdef __cplusplus
#include <string>

/* ---- C++ only: strings, and names with several meanings ---- */

/* Channel i to url[i] with that server-side port. All are connected on return. 0, negative on failure. */
int MPW_Init(std::string* url, int* server_side_ports, int* client_side_ports, int num_channels);
int MPW_Init(std::string* url, int* server_side_ports, int num_channels);
int MPW_Init(std::string url, int port); /* one channel */
int MPW_Init(std::string url);           /* one channel, port 6000 */
int MPW_Init();                          /* none yet: reads the environment */

/* A path of channels with the ports server_side_base_port, + 1, ... Its number, or a negative value. */
int MPW_CreatePath(std::string host, int server_side_base_port, int num_streams);
int MPW_CreatePathWithoutConnect(std::string host, int server_side_base_port, int streams_in_path);

/* Over all channels of a path. 0, negative on failure. */
int MPW_Send(char* sendbuf, long long int sendsize, int path);
int MPW_Recv(char* recvbuf, long long int recvsize, int path);
int MPW_SendRecv(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int path);
/* With MPW_DSendRecv on the other side, whose sendsize this side does not know. What came. */
int MPW_DSendRecv(char* sendbuf, long long int sendsize, char* recvbuf, long long int maxrecvsize, int path);

/* The same over channels. */
int MPW_Send(char* buf, long long int size, int* channels, int num_channels);
int MPW_Recv(char* buf, long long int size, int* channels, int num_channels);
int MPW_SendRecv(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int* channel,
                 int num_channels);
long long int MPW_DSendRecv(char* sendbuf, long long int sendsize, char* recvbuf, long long int maxrecvsize,
                            int* channel, int num_channels);

char* MPW_DNSResolve(std::string host);

extern "C" {
#else
#include <stdbool.h>
#endif

/* ---- C and C++ ---- */

/* The address of a host in text, in memory of the calling thread until its next call. NULL where there is none. */
char* MPW_DNSResolve(char* host);

/* Connects the channels of a path; server_wait: as WHO CALLS says, else calls only. 0, negative on failure. */
int MPW_ConnectPath(int path_id, bool server_wait);
/* Closes its channels; its number and theirs may be given again. 0, negative on failure. */
int MPW_DestroyPath(int path);

/* Waits until all that was sent is acknowledged, closes everything, forgets every setting. 0. */
int MPW_Finalize(void);
/* Closes channels; the connection ends with the last one to its program. Reopening connects them to whatever program is
   there then. Both sides do both. */
void MPW_CloseChannels(int* channels, int num_channels);
void MPW_ReOpenChannels(int* channels, int num_channels);
void MPW_Print(void); /* all channels, to standard output */
int MPW_NumChannels(void);

/* One buffer for each channel, of a size of its own. */
int MPW_PSendRecv(char** sendbuf, long long int* sendsize, char** recvbuf, long long int* recvsize, int* channel,
                  int num_channels);
int MPW_PSend(char** sendbuf, long long int* sendsize, int* channel, int num_channels);
int MPW_PRecv(char** recvbuf, long long int* recvsize, int* channel, int num_channels);

/* Sends over one set of channels while it receives over another. DCycle: what comes is of unknown size, at most
   recvsize, and meets MPW_DCycle or MPW_DSendRecv. What came. */
int MPW_Cycle(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int* ch_send,
              int num_ch_send, int* ch_recv, int num_ch_recv);
long long int MPW_DCycle(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int* ch_send,
                         int num_ch_send, int* ch_recv, int num_ch_recv);

/* Passes on all that comes over channels[i] to channels2[i] and the other way, until one side closes. A message is passed
   on when it is there as a whole; 'maki wan relay' joins two networks without that. */
void MPW_Relay(int* channels, int* channels2, int num_channels);

/* Returns when the other side has called it for this channel too. */
void MPW_Barrier(int channel);

/* Begins a MPW_SendRecv over a path. Its number, for the other two; negative on failure. A path's exchanges finish in any
   order, and match the other side's in the order of their beginning. */
int MPW_ISendRecv(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int path);
bool MPW_Has_NBE_Finished(int NBE_id);
void MPW_Wait(int NBE_id);

/* How MPW_Send cuts a buffer: split_buf[i] and chunk_sizes[i] for each of num_chunks parts. */
void MPW_splitBuf(char* buf, long long int bsize, int num_chunks, char** split_buf, long long int* chunk_sizes);

/* Bytes that a stream is given, and that are taken from one, at once. */
void MPW_setChunkSize(int sending, int receiving);
/* TCP window in bytes, 0: the kernel's own tuning. For connections made from then on. */
void MPW_setWin(int channel, int size);
void MPW_setPathWin(int path, int size);
/* Bytes a second that a channel sends at most; -1 (as it begins): no bound. A path's bound is that of its channels together. */
void MPW_setPacingRate(double rate);
double MPW_getPacingRate(void);
/* On (as it begins): a path has as many TCP streams as its channels, or 16 where they are fewer. Off: as many as its
   channels. MAKI_WAN_SETTINGS=streams=N goes before both. Counts for paths made from then on. */
void MPW_setAutoTuning(bool b);
bool MPW_AutoTuning(void);

/* Called with what went wrong, instead of printing it and ending the program; the failing call then returns a negative
   value. NULL: as before. The handler that was there. */
typedef void (*MPW_ErrorHandler)(const char* message);
MPW_ErrorHandler MPW_SetErrorHandler(MPW_ErrorHandler handler);

/* ---- the forms for C of what is C++ above ---- */

int MPW_Init_c(char** url, int* ports, int numsockets);
int MPW_Init1_c(char* url, int port);
int MPW_SendRecv1_c(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int base_channel);
int MPW_SendRecv_c(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int* base_channel,
                   int num_channels);
int MPW_PSendRecv_c(char** sendbuf, long long int* sendsize, char** recvbuf, long long int* recvsize, int* channel,
                    int num_channels);
/* Not in MPWide. */
int MPW_Send_c(char* buf, long long int size, int* channels, int num_channels);
int MPW_Recv_c(char* buf, long long int size, int* channels, int num_channels);
long long int MPW_DSendRecv_c(char* sendbuf, long long int sendsize, char* recvbuf, long long int maxrecvsize,
                              int* channel, int num_channels);
int MPW_CreatePath_c(char* host, int server_side_base_port, int num_streams);
int MPW_CreatePathWithoutConnect_c(char* host, int server_side_base_port, int streams_in_path);
int MPW_PathSend_c(char* buf, long long int size, int path);
int MPW_PathRecv_c(char* buf, long long int size, int path);
int MPW_PathSendRecv_c(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int path);
int MPW_PathDSendRecv_c(char* sendbuf, long long int sendsize, char* recvbuf, long long int maxrecvsize, int path);

#ifdef __cplusplus
}
#endif

#endif
