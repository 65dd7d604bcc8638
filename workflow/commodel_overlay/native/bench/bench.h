/* bench.h: overlay-bench, which measures an overlay network as the players measure MPI.
 *
 * The front-end reads the cases, starts each tree once for all its cases, and takes samples. A back-end executes requests,
 * whose kinds are tags of packets.
 */
#ifndef COMMODEL_BENCH_H
#define COMMODEL_BENCH_H

#include "harness.h"
#include "overlay.h"
#include "topology.h"

/* ---- requests to back-ends ---- */
enum {
  PREPARE, /* "%ud %ud %alf": bytes of an answer, the clock, the skew of each back-end's clock */
  ASK,     /* "%ud %lf %lf %ud %auc": number of answers, time of the first (0: now), period, whether to check, payload */
  CAST,    /* "%ud %ud %auc": whether it is the last, whether to check, payload; answer to the last: "%lf", its arrival */
  BEGAN,   /* "": answer "%lf %lf %lf": the negated start of the last ASK, the start, and 1 if it was late, else 0 */
  USAGE,   /* "": answer "%lf": processor seconds */
  NAME,    /* "": answer "%s": the back-end's host */
  CLASS,   /* "%ud %ud": bytes of its data, and number of kinds; answer "%uld": the checksum of the data */
  DATA,    /* as CLASS; answer "%auc": the data */
  CONNECT  /* "%s %d %uld %ud": back-end 0 connects to this address and port, sends this word, and echoes messages; at the
              end: answer "%lf" */
};
enum { MONOTONIC, REAL };
double read_clock(int which);
int back_end(void); /* the whole program, as a back-end */

/* ---- payload.c: data sent down and up ---- */
void fill_down(unsigned char *bytes, size_t count);
bool is_down(const unsigned char *bytes, size_t count);
OverlayPacket *make_answer(int leaf, size_t bytes);
void fill_data(unsigned char *bytes, size_t count, int kind);
bool is_data(const unsigned char *bytes, size_t count, int kind);
/* Whether a packet of this filter at the root is the result of the answers of all leaves. */
bool is_reduced(const char *filter, OverlayPacket *packet, int leaves, size_t bytes);

/* ---- tcp.c: one TCP connection, blocking ---- */
int listen_on(const char *host, char address[static 64], int *port);
int accept_token(int listener, uint64_t token);
int connect_to(const char *address, int port, uint64_t token);
bool exchange(int socket, char *bytes, size_t count, bool first); /* first: sends, then receives */

/* ---- network.c: a running tree of processes ---- */
typedef struct {
  const char *file;
  Topology *tree;
  char *const *launch; /* NULL: all on this machine */
  OverlayNetwork *network; /* NULL: not running */
  OverlayStream *bookkeeping, *usage;
  double *skews; /* of each back-end's clock, relative to the front-end's */
  double synced; /* when they were estimated */
  double uncertainty; /* largest uncertainty of a skew; 0 if all processes read one clock */
  double query; /* processor seconds of a query for processor seconds */
} Net;
Net read_net(const Case *c, const char *file, char *const *launch); /* ends with case_error */
OverlayNetwork *start_net(const Net *net);
void start_net_once(Net *net);
void stop_net(Net *net);
void free_net(Net *net);
void align_net(Net *net); /* estimates the skews of clocks, if there are several */
bool exceeds_uncertainty(const Net *net, double seconds); /* for a time between two clocks */
double net_clock(const Net *net);
OverlayStream *open_stream(const Net *net, const char *filter); /* over all back-ends */
void wait_for_back_ends(const Net *net);
double *count_levels(const Net *net, int *depths); /* levels.c */
void write_levels(const Options *options, const char *id, const double *before, const double *after, int depths);
double net_usage(Net *net); /* processor seconds of all its processes */
void receive_packet(OverlayStream *stream, OverlayPacket **packet); /* ends the program if there is none */
#define TRY(call)                                                                                                      \
  do {                                                                                                                 \
    if ((call) != OVERLAY_OK) DIE("%s: %s", #call, overlay_error());                                                   \
  } while (0)

/* ---- measured operations, one file for each ---- */
enum { OPERATION, TOPOLOGY, BYTES_, FILTER, COMPUTE, MODE, PERIOD, COLUMNS };
typedef struct {
  const Case *c;
  Net *net;
  OverlayStream *stream;
  OverlayPacket *packet; /* the packet that is sent down */
  void *own;
  size_t bytes;
  double lead; /* seconds from the request to the common start */
} Measured;
typedef struct {
  const char *name;
  const char *const *modes;           /* NULL: those of reduce */
  bool needs_network;                        /* it needs the network of the case */
  bool local_only;                          /* only if all processes are forked on this machine */
  int with;                           /* WITH_…: columns of its samples */
  void (*prepare)(Measured *m);       /* untimed preparation, and a first wave, which is checked */
  /* Sets seconds, valid, and the further columns. Seconds are those of all waves of a sample. */
  void (*sample)(Measured *m, Samples *samples, int first, int n);
  double (*single_wave)(Measured *m); /* seconds of one wave, if a case may have several */
  void (*cleanup)(Measured *m);
} Operation;
extern const Operation reduce, bcast, startup, pingpong, skew, classes;

#endif
