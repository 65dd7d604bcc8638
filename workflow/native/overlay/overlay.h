/* overlay.h: a tree of processes over TCP that multicasts from one front-end and reduces what its back-ends answer.
 *
 * A network is started by the front-end; a communicator is a set of its back-ends; a stream carries typed packets down
 * to them and up through filters; a packet is values behind a format string. Back-ends have the numbers 0 … n - 1.
 * Functions return OVERLAY_OK or one of the codes below, pointers are NULL where it failed; overlay_error() says why.
 * Seconds below 0 wait without end, 0 does not wait. One network belongs to one thread, or is shared by overlay_share();
 * nothing here starts threads.
 */
#ifndef OVERLAY_H
#define OVERLAY_H

#include <stddef.h>
#include <stdint.h>

typedef struct OverlayNetwork OverlayNetwork;
typedef struct OverlayComm OverlayComm;
typedef struct OverlayStream OverlayStream;
typedef struct OverlayPacket OverlayPacket;

enum { OVERLAY_OK = 0, OVERLAY_FAILED = -1, OVERLAY_TIMEOUT = -2, OVERLAY_CLOSED = -3, OVERLAY_LOST = -4 };
const char *overlay_error(void); /* what went wrong last in this thread, one line */

/* ---- Networks: the front-end ---- */
typedef struct {
  const char *topology;        /* a file: `host:0 => host:1 host:2 ;` (MRNet's format) or a table node,parent */
  const char *topology_text;   /* or the text of one; leaves are back-ends, the root is the front-end */
  char *const *backend;        /* command of the back-ends, NULL-ended; NULL: others start them, which then attach */
  char *const *launch;         /* command that runs one on a host, {host} in it; NULL: all by fork on this machine */
  const char *node_program;    /* of internal processes; NULL: overlay-node beside this library */
  const char *bind;            /* where the front-end listens; NULL: 127.0.0.1, with `launch` its host's address */
  const char *connection_file; /* for back-ends that others start: mode 0600; gone again when all have attached */
  double start_seconds;        /* for start-up; 0: 60 */
  double silence;              /* seconds after which a silent internal process or host counts as lost; 0: 20 */
  int join;                    /* 1, with a connection file: back-ends attach at any time, also in place of lost ones */
  int authenticate;            /* 1: packets have tags (SipHash-2-4-128), by which changed and foreign ones are refused */
  uint32_t window;             /* bytes that a stream may have under way on a link; 0: 256 KiB */
} OverlayOptions;

/* Starts all processes, unless others start the back-ends. On this machine they end with the thread that calls it. */
OverlayNetwork *overlay_start(const OverlayOptions *options);
int overlay_await(OverlayNetwork *network, double seconds); /* until all back-ends have attached */
int overlay_backends(const OverlayNetwork *network);        /* how many there are, the lost ones too */
const char *overlay_backend_name(const OverlayNetwork *network, int backend); /* host:number of the topology */
int overlay_lost(const OverlayNetwork *network, int *backends, int most);     /* counts, and lists, the lost ones */

typedef struct {
  double launch, tree, backends;
} OverlayPhases;                                             /* seconds since the start, each after the other */
OverlayPhases overlay_phases(const OverlayNetwork *network); /* own children launched; internal processes up; all up */

enum { OVERLAY_ALONG_TREE, OVERLAY_END_TO_END };
/* How far each back-end's clock is ahead, by the fastest of `rounds` round trips over each link, or through the tree; and
 * by how much that may be wrong, half of these trips, unless NULL. Not a number for lost ones. */
int overlay_skew(OverlayNetwork *network, int how, int rounds, double *seconds, double *uncertainty);

/* ---- Networks: what there is to be seen, in the front-end. Process 0 is the front-end itself, numbered depth first. ---- */
typedef struct {
  int node, stream; /* stream: -1 for all of a process, those that have ended too */
  uint64_t packets_up, packets_down, bytes_up, bytes_down; /* sent; up, in the front-end: received by the tool */
  uint64_t waves, queued;                                  /* queued: packets that wait there now */
  double filter_seconds, cpu_seconds, round_trip;          /* the last two of a process; round_trip: to its parent */
} OverlayMetrics;
/* How many rows; they hold until the next call. Back-ends that compute answer late: it waits so long at most. */
int overlay_metrics(OverlayNetwork *network, double seconds, const OverlayMetrics **rows);
enum { OVERLAY_EVENT_LOST, OVERLAY_EVENT_REATTACHED, OVERLAY_EVENT_ENDED, OVERLAY_EVENT_JOINED };
typedef struct {
  int kind, first, count; /* of LOST and JOINED: so many back-ends from the first on */
  int node, parent;       /* of REATTACHED: the process, and to which */
  int stream, code;       /* of ENDED: as overlay_ended() has it */
  char why[256];
} OverlayEvent;
int overlay_event(OverlayNetwork *network, OverlayEvent *event); /* 1: the oldest not taken yet; 0: none; never waits */
/* Is called for each while the network receives or sends; it must not use the network. NULL: nothing is. */
void overlay_on_event(OverlayNetwork *network, void (*call)(void *context, const OverlayEvent *event), void *context);
enum { OVERLAY_GONE = -2 };
typedef struct {
  int parent, depth, children, backend; /* parent: now; -1: none, or OVERLAY_GONE. backend: -1 of other processes */
  const char *name;                     /* host:number */
} OverlayNode;
int overlay_nodes(const OverlayNetwork *network); /* processes of the topology */
int overlay_node(const OverlayNetwork *network, int node, OverlayNode *about);

/* ---- Networks: a back-end ---- */
/* By the environment that started it or, with a connection file, as number `backend` (-1: its rank in its job). */
OverlayNetwork *overlay_attach(const char *connection_file, int backend);
int overlay_backend(const OverlayNetwork *network); /* its own number; -1 in the front-end */

/* ---- Networks: both ---- */
/* Before others use it: from now on several threads may, each with streams of its own, by overlay_recv(). One closes it. */
int overlay_share(OverlayNetwork *network);
int overlay_flush(OverlayNetwork *network);    /* hands what was sent to the kernel; receiving does so, too */
int overlay_fd(const OverlayNetwork *network); /* for poll(), once a receive of 0 seconds has found nothing more */
void overlay_close(OverlayNetwork *network);   /* ends it: by the front-end all processes, each waited for */

/* ---- Communicators: the front-end ---- */
OverlayComm *overlay_broadcast(OverlayNetwork *network); /* all back-ends; belongs to the network */
OverlayComm *overlay_subset(OverlayNetwork *network, const int *backends, int count); /* some; overlay_free_comm() it */
int overlay_comm_size(const OverlayComm *comm);                                       /* how many back-ends are in it */
void overlay_free_comm(OverlayComm *comm); /* streams that were opened over it go on */

/* ---- Streams ---- */
enum { OVERLAY_WAIT_FOR_ALL, OVERLAY_TIME_OUT, OVERLAY_DO_NOT_WAIT }; /* when packets from below become a wave */
enum { OVERLAY_CONTINUE, OVERLAY_STOP };                              /* when a back-end is lost */
typedef struct {
  const char *filter; /* none min max sum average concat bin work:SECONDS usage, or FILE.so[@FUNCTION][:ARGUMENT] */
  int sync;           /* OVERLAY_WAIT_FOR_ALL … */
  double seconds;     /* of OVERLAY_TIME_OUT, from a wave's first packet at each node */
  int on_loss;        /* OVERLAY_CONTINUE without it, or OVERLAY_STOP: receiving and sending say OVERLAY_LOST */
  const char *root, *leaf, *down; /* filters in the front-end in place of `filter`; of what a back-end sends; of what
                                     goes down: one packet for each, in all others. NULL everywhere: none */
  const char *sync_filter;        /* FILE.so[@FUNCTION][:ARGUMENT], which makes waves in place of `sync` */
} OverlayStreamOptions;

OverlayStream *overlay_open(OverlayComm *comm, const OverlayStreamOptions *options); /* front-end; NULL: defaults */
uint32_t overlay_stream_id(const OverlayStream *stream);                   /* the same number in all processes */
int overlay_send(OverlayStream *stream, int tag, const char *format, ...); /* waits while the stream's window is full */
int overlay_send_packet(OverlayStream *stream, OverlayPacket *packet);     /* the packet stays the caller's */
int overlay_writable(const OverlayStream *stream);                         /* 1: a send would not wait */
int overlay_recv(OverlayStream *stream, double seconds, OverlayPacket **packet); /* overlay_release() it */
/* What came first on any stream; in the front-end also, once each, a stream that has ended: its code, and no packet. */
int overlay_recv_any(OverlayNetwork *network, double seconds, OverlayPacket **packet, OverlayStream **stream);
int overlay_set_argument(OverlayStream *stream, const char *argument); /* front-end: of its filters, from now on */
int overlay_missing(const OverlayStream *stream, int *backends, int most); /* counts, lists, the lost of its own */
void overlay_close_stream(OverlayStream *stream); /* front-end; what back-ends still send on it is dropped */
/* OVERLAY_OK while it goes on, else why it ended: closed, or a filter failed somewhere. Other streams go on. A back-end that
 * sends without being asked should look, since its packets are dropped then. */
int overlay_ended(const OverlayStream *stream);

/* ---- Packets ----
 * Formats: %c %uc %hd %uhd %d %ud %ld %uld (8, 16, 32, 64 bits) %f %lf %s and arrays %ac … %as. What is packed is, per
 * value, itself, or a pointer and a uint32_t count; what is unpacked goes to a pointer to it, or to a pointer to a
 * const pointer and a uint32_t *count. Strings and arrays point into the packet: they hold until it is released. */
typedef struct {
  union {
    int64_t d;   /* %c %hd %d %ld */
    uint64_t ud; /* %uc %uhd %ud %uld */
    double lf;   /* %f %lf */
    const char *s;
    const void *array; /* of the type the format names, const char *const * for %as */
  };
  uint32_t count; /* elements of an array */
} OverlayValue;

OverlayPacket *overlay_pack(int tag, const char *format, ...);
OverlayPacket *overlay_pack_values(int tag, const char *format, const OverlayValue *values);
int overlay_unpack(OverlayPacket *packet, const char *format, ...);        /* fails where the packet has other types */
int overlay_values(OverlayPacket *packet, OverlayValue *values, int most); /* how many there are; at most 64 */
const char *overlay_format(const OverlayPacket *packet);
int overlay_tag(const OverlayPacket *packet);
int overlay_source(const OverlayPacket *packet);    /* lowest back-end in it; -1 from the front-end */
int overlay_leaves(const OverlayPacket *packet);    /* of how many back-ends it holds values */
OverlayPacket *overlay_keep(OverlayPacket *packet); /* one more overlay_release() is needed then */
void overlay_release(OverlayPacket *packet);
uint64_t overlay_checksum(const void *bytes, size_t count); /* FNV-1a, what filter `bin` sorts back-ends by */

/* ---- Own filters: a shared object, linked with -loverlay or into a tool that exports these functions, with functions
 * int FUNCTION(OverlayWave *), overlay_filter unless a stream names another; if state is to be freed, void
 * FUNCTION_end(void *state); and if it is to survive the loss of its process, OverlayPacket *FUNCTION_save(void *state),
 * called after each wave, and int FUNCTION_load(void **state, OverlayPacket *saved), which adds it to the parent's. ---- */
typedef struct {
  OverlayPacket **in;   /* one from each child that has one, in the children's order */
  int count;            /* of packets in */
  int root;             /* 1 in the front-end */
  const char *argument; /* what followed the colon, or "" */
  void *state;          /* of this stream in this process; NULL at first */
} OverlayWave;
typedef struct { /* int FUNCTION(OverlayArrivals *) of a sync_filter says which packets are the next wave, if any are */
  int count;            /* of children */
  const int *waiting;   /* packets that have come from each and are in no wave yet */
  int *take;            /* to be set to 1 for each child whose first packet is part of the wave */
  double since, again;  /* seconds since the last wave; again: to be set, after how many to ask again at the latest */
  const char *argument; /* as above */
  void *state;
} OverlayArrivals;
int overlay_emit(OverlayWave *wave, const char *format, const OverlayValue *values); /* one packet upwards */
int overlay_forward(OverlayWave *wave, OverlayPacket *packet);                       /* one that came in, as it is */
int overlay_fail(const char *format, ...); /* sets overlay_error() and returns OVERLAY_FAILED, which ends the stream */

#endif
