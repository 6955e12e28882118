/* MPWide's calls over Maki's paths, for C++ and C: a program written for MPWide is recompiled and linked with
   libmaki_wan.a. Both sides must use it.

   CHANNELS AND PATHS. A channel is a lane to one other program, numbered from 0 in the order of creation. A message
   over n channels is cut into n parts that differ by one byte at most, and arrives whole at a receive over as many
   channels; channels to several hosts scatter and gather. A path is a set of channels to one host, with its own
   number. All channels to one program share an encrypted bundle of TCP streams that survives the loss of its
   connections. A part is a message: the n-th receive of a channel takes its n-th send, which must have the same size.
   Empty parts are not sent. A null pointer in place of an array of channels stands for channels 0, 1, ...
   Two threads may use one path at once if one sends and the other receives.

   PORTS. One open port is enough: the smallest server-side port of the channels to a host is listened on and called.
   The others are names that match channels of the two sides (equal ports; if the sides have none in common, because
   one was forwarded, the n-th matches the n-th). If channels to one host end at several programs, each
   program's smallest port must be open. Client-side ports are accepted and unused ('local_ports' below is for
   firewalls).

   WHO CALLS. A host "0" or "0.0.0.0" (or empty) waits to be called. Any other host is both called and waited for:
     one side waits, the other names it   the usual case: the second calls the first
     both name each other                 both listen (if the port is free) and both call; one of the resulting paths is
                                          kept, chosen by the side that drew the lower random number. It is enough
                                          that one of the two can be reached, and both may be on one host
     both wait                            an error after 'wait' seconds that says so. On one host the second finds the
                                          port taken and calls its owner
     MPW_ConnectPath(path, false)         calls only, and gives up after 'connect_timeout'
   Whoever starts first waits for the other, 'wait' seconds at most. All hosts are connected at the same time.

   ENVIRONMENT
     MAKI_WAN_KEY       key file, the same on both sides ('maki wan keygen FILE' makes one). Several, separated by ':':
                        calling uses the first, listening admits any
     MAKI_WAN_INSECURE  1 instead of a key: no encryption, and anyone may call; logged
     MAKI_WAN_SETTINGS  "name=value,name=value", or a file with a [path] table as 'maki wan bench' prints: streams,
                        window, send_chunk, receive_chunk, pacing, congestion, patience and the other keys of
                        'maki wan', and wait (time until an absent peer is an error, 600 s), listen (address to
                        listen on)

   ERRORS. Calls that move data or initialize print the error and end the program with status 1: a program written
   for MPWide, where most of them return nothing, would go on with missing data. With MPW_SetErrorHandler they
   return a negative value instead. MPW_CreatePath, MPW_CreatePathWithoutConnect, MPW_ConnectPath and MPW_DestroyPath
   always print and return a negative value. After an error the buffers of that call may be used until MPW_Finalize. */
#ifndef MAKI_WAN_NET_MPW_H
#define MAKI_WAN_NET_MPW_H

#ifdef __cplusplus
#include <string>

/* ---- C++ only: strings, and names with several meanings ---- */

/* Connects channel i to url[i] with server_side_ports[i], all of them on return. 0, negative on failure. */
int MPW_Init(std::string* url, int* server_side_ports, int* client_side_ports, int num_channels);
int MPW_Init(std::string* url, int* server_side_ports, int num_channels);
int MPW_Init(std::string url, int port); /* one channel */
int MPW_Init(std::string url);           /* one channel, port 6000 */
int MPW_Init();                          /* none yet: reads the environment */

/* Makes a path of channels with the ports server_side_base_port, + 1, ... Its number, or a negative value. */
int MPW_CreatePath(std::string host, int server_side_base_port, int num_streams);
int MPW_CreatePathWithoutConnect(std::string host, int server_side_base_port, int streams_in_path);

/* Over all channels of a path. 0, negative on failure. */
int MPW_Send(char* sendbuf, long long int sendsize, int path);
int MPW_Recv(char* recvbuf, long long int recvsize, int path);
int MPW_SendRecv(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int path);
/* Meets MPW_DSendRecv on the other side, whose sendsize this side does not know. The bytes received. */
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

/* The address of a host as text, valid in the calling thread until its next call. NULL if there is none. */
char* MPW_DNSResolve(char* host);

/* Connects the channels of a path; server_wait: see WHO CALLS; false: calls only. 0, negative on failure. */
int MPW_ConnectPath(int path_id, bool server_wait);
/* Closes a path and its channels; their numbers may be reused. 0, negative on failure. */
int MPW_DestroyPath(int path);

/* Waits until all sent data are acknowledged, closes everything, and resets all settings. 0. */
int MPW_Finalize(void);
/* Closes channels; the connection ends with the last one to its program. Reopening connects them to the program
   that is there then. Both sides must call both. */
void MPW_CloseChannels(int* channels, int num_channels);
void MPW_ReOpenChannels(int* channels, int num_channels);
void MPW_Print(void); /* all channels, to standard output */
int MPW_NumChannels(void);

/* One buffer for each channel, with its own size. */
int MPW_PSendRecv(char** sendbuf, long long int* sendsize, char** recvbuf, long long int* recvsize, int* channel,
                  int num_channels);
int MPW_PSend(char** sendbuf, long long int* sendsize, int* channel, int num_channels);
int MPW_PRecv(char** recvbuf, long long int* recvsize, int* channel, int num_channels);

/* Sends over one set of channels while receiving over another. DCycle: the received size is unknown, at most
   recvsize; it meets MPW_DCycle or MPW_DSendRecv. The bytes received. */
int MPW_Cycle(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int* ch_send,
              int num_ch_send, int* ch_recv, int num_ch_recv);
long long int MPW_DCycle(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int* ch_send,
                         int num_ch_send, int* ch_recv, int num_ch_recv);

/* Forwards all messages from channels[i] to channels2[i] and back, until one side closes. A message is forwarded when
   it is complete; 'maki wan relay' joins two networks without that delay. */
void MPW_Relay(int* channels, int* channels2, int num_channels);

/* Returns when the other side has called it for this channel too. */
void MPW_Barrier(int channel);

/* Begins an MPW_SendRecv over a path. Its number, for the next two calls; negative on failure. A path's exchanges
   finish in any order, and match the other side's in the order of their begin. */
int MPW_ISendRecv(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int path);
bool MPW_Has_NBE_Finished(int NBE_id);
void MPW_Wait(int NBE_id);

/* How MPW_Send cuts a buffer: split_buf[i] and chunk_sizes[i] for each of num_chunks parts. */
void MPW_splitBuf(char* buf, long long int bsize, int num_chunks, char** split_buf, long long int* chunk_sizes);

/* Bytes written to a stream, and read from one, at once. */
void MPW_setChunkSize(int sending, int receiving);
/* TCP window in bytes, 0: the kernel's own tuning. Applies to later connections. */
void MPW_setWin(int channel, int size);
void MPW_setPathWin(int path, int size);
/* Most bytes a second that a channel sends; -1 (default): no bound. A path's bound is the sum over its channels. */
void MPW_setPacingRate(double rate);
double MPW_getPacingRate(void);
/* On (default): a path has as many TCP streams as channels, but at least 16. Off: as many as channels.
   MAKI_WAN_SETTINGS=streams=N overrides both. Applies to later paths. */
void MPW_setAutoTuning(bool b);
bool MPW_AutoTuning(void);

/* Sets a handler that is called with the error, which is then not printed and does not end the program; the failing
   call returns a negative value. NULL: the default again. Returns the previous handler. */
typedef void (*MPW_ErrorHandler)(const char* message);
MPW_ErrorHandler MPW_SetErrorHandler(MPW_ErrorHandler handler);

/* ---- C forms of the C++ calls above ---- */

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
