/* bench.h: overlay-bench, which measures an overlay network as the players measure MPI.
 *
 * The front-end reads cases, starts each tree once for all its cases, and samples. A back-end executes requests, which
 * are tags, equal in all samples of a case.
 */
#ifndef COMMODEL_BENCH_H
#define COMMODEL_BENCH_H

#include "harness.h"
#include "overlay.h"
#include "topology.h"

/* ---- requests to back-ends ---- */
enum {
  PREPARE, /* "%ud %ud %alf": bytes of an answer, which clock, how far each back-end's is ahead */
  ASK,     /* "%ud %lf %lf %ud %auc": how many answers, from when (0: now), one every so often, check, payload */
  CAST,    /* "%ud %ud %auc": is it the last, check, payload; the last is answered "%lf", when it was there */
  BEGAN,   /* "": when it began the last ASK; answered "%lf %lf %lf": negated, as it is, too late (1) or not (0) */
  USAGE,   /* "": processor seconds, "%lf" */
  NAME,    /* "": its host, "%s" */
  CLASS,   /* "%ud %ud": bytes of its data, and how many kinds there are; answered "%uld", their checksum */
  DATA,    /* the same; answered "%auc", the data */
  CONNECT  /* "%s %d %uld %ud": back-end 0 connects there, says this word, and echoes messages of so many bytes */
};
enum { MONOTONIC, REAL };
double read_clock(int which);
int back_end(void); /* the whole program, as a back-end */

/* ---- payload.c: data sent down and up; exact in every filter ---- */
void fill_down(unsigned char *bytes, size_t count);
bool is_down(const unsigned char *bytes, size_t count);
OverlayPacket *answer_of(int leaf, size_t bytes);
void fill_data(unsigned char *bytes, size_t count, int kind);
bool is_data(const unsigned char *bytes, size_t count, int kind);
/* Whether a packet of this filter at the root is the result of the answers of all leaves. */
bool is_reduced(const char *filter, OverlayPacket *packet, int leaves, size_t bytes);

/* ---- tcp.c: the layer below: one connection, blocking ---- */
int listen_on(const char *host, char address[static 64], int *port);
int accept_word(int listener, uint64_t word);
int connect_to(const char *address, int port, uint64_t word);
bool exchange(int socket, char *bytes, size_t count, bool first); /* first: sends, then receives */

/* ---- network.c: a tree of processes that is up ---- */
typedef struct {
  const char *file;
  Topology *tree;
  char *const *launch; /* NULL: all on this machine */
  OverlayNetwork *network; /* NULL: not up */
  OverlayStream *bookkeeping, *usage;
  double *ahead; /* of the front-end's clock, by back-end */
  double synced;
  double uncertainty; /* of these, the worst that is in use; 0 where all read one clock */
  double query; /* processor seconds of the queries for them */
} Net;
Net read_net(const Case *c, const char *file, char *const *launch); /* dies by case_error */
OverlayNetwork *start_net(const Net *net);
void raise_net(Net *net);
void lower_net(Net *net);
void free_net(Net *net);
void align_net(Net *net); /* clocks, where there are several */
bool is_known(const Net *net, double seconds); /* a time between two clocks: larger than their uncertainty */
double net_clock(const Net *net);
OverlayStream *open_stream(const Net *net, const char *filter); /* over all back-ends */
void use_once(const Net *net);
double *count_levels(const Net *net, int *depths); /* levels.c */
void write_levels(const Options *options, const char *id, const double *before, const double *after, int depths);
double net_usage(Net *net); /* seconds of all its processes */
void take(OverlayStream *stream, OverlayPacket **packet); /* ends the program if there is none */
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
  OverlayPacket *packet; /* that goes down */
  void *own;
  size_t bytes;
  double lead; /* from agreeing on a start to the start */
} Measured;
typedef struct {
  const char *name;
  const char *const *modes;           /* that it has; NULL: those of waves */
  bool raised;                        /* it wants the network up */
  bool here;                          /* only where all processes are forked on this machine */
  int with;                           /* WITH_… its samples have */
  void (*prepare)(Measured *m);       /* untimed preparation, and the first wave, checked */
  /* Seconds, valid, and what it has with them. Of several waves, seconds are of all of them. */
  void (*sample)(Measured *m, Samples *samples, int first, int n);
  double (*once)(Measured *m); /* seconds of one wave, where a case may have several */
  void (*cleanup)(Measured *m);
} Operation;
extern const Operation reduce, bcast, startup, pingpong, skew, classes;

#endif
