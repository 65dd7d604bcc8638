/* overlay.h: a tree of processes over TCP: a front-end multicasts, and what back-ends answer is reduced. In full:
 * docs/overlay-reference.md. Functions return OVERLAY_OK, a count or a code below. Seconds below 0: wait without end. */
#ifndef OVERLAY_H
#define OVERLAY_H
#include <stddef.h>
#include <stdint.h>
typedef struct OverlayNetwork OverlayNetwork;
typedef struct OverlayComm OverlayComm;     /* a set of back-ends, which have the numbers 0 … n - 1 */
typedef struct OverlayStream OverlayStream; /* packets to a communicator, and up through filters */
typedef struct OverlayPacket OverlayPacket; /* values behind a format string */
enum { OVERLAY_OK = 0, OVERLAY_FAILED = -1, OVERLAY_TIMEOUT = -2, OVERLAY_CLOSED = -3, OVERLAY_LOST = -4 };
const char *overlay_error(void); /* the last failure in this thread, one line */
/* ---- Networks: the front-end ---- */
typedef struct {
  const char *topology, *topology_text; /* a file, or a text: `host:0 => host:1 host:2 ;`, or a table node,parent */
  char *const *backend, *const *launch; /* command of back-ends; one that runs it on {host}; NULL: others; by fork */
  const char *node_program;             /* of internal processes; NULL: overlay-node beside this library, or installed */
  const char *bind;                     /* where the front-end listens; NULL: 127.0.0.1, or its host with `launch` */
  const char *connection_file;          /* for processes that others start */
  double start_seconds, silence;        /* for start-up (0: 60); until a silent process counts as lost (0: 20) */
  int join;                             /* 1: back-ends attach at any time, by the connection file */
  int one_step;                         /* 1: one command, `launch`, starts all processes, with {tasks} or {hosts} */
  int authenticate;                     /* 1: packets have tags, by which changed and foreign ones are refused */
  uint32_t window;                      /* bytes in flight of a stream on a link; 0: 256 KiB */
} OverlayOptions;
OverlayNetwork *overlay_start(const OverlayOptions *options);
int overlay_await(OverlayNetwork *network, double seconds); /* until all back-ends that others start have attached */
int overlay_backends(const OverlayNetwork *network);        /* how many there are, the lost ones too */
const char *overlay_backend_name(const OverlayNetwork *network, int backend); /* host:number of the topology */
int overlay_lost(const OverlayNetwork *network, int *backends, int max_count);     /* counts and lists the lost ones */
typedef struct { double launch, tree, backends; } OverlayPhases;
OverlayPhases overlay_phases(const OverlayNetwork *network); /* seconds until each phase of start-up was over */
enum { OVERLAY_ALONG_TREE, OVERLAY_END_TO_END };
int overlay_skew(OverlayNetwork *network, int how, int rounds, double *seconds, double *uncertainty); /* of clocks */
/* ---- Networks: what can be seen in the front-end, which is process 0 ---- */
typedef struct {
  int node, stream; /* stream: -1 for all of a process */
  uint64_t packets_up, packets_down, bytes_up, bytes_down, waves, queued;
  double filter_seconds, cpu_seconds, round_trip; /* the last two of a process */
} OverlayMetrics;
int overlay_metrics(OverlayNetwork *network, double seconds, const OverlayMetrics **rows); /* until the next call */
enum { OVERLAY_EVENT_LOST, OVERLAY_EVENT_REATTACHED, OVERLAY_EVENT_ENDED, OVERLAY_EVENT_JOINED };
typedef struct {
  int kind, first, count, node, parent, stream, code; /* back-ends LOST, JOINED; process REATTACHED; stream ENDED */
  char why[256];
} OverlayEvent;
int overlay_event(OverlayNetwork *network, OverlayEvent *event); /* 1: the oldest not taken yet; 0: none; never waits */
void overlay_on_event(OverlayNetwork *network, void (*call)(void *context, const OverlayEvent *event), void *context);
enum { OVERLAY_GONE = -2 };
typedef struct {
  int parent, depth, children, backend; /* parent -1: none, or OVERLAY_GONE; backend -1: it is none */
  const char *name;
} OverlayNode;
int overlay_nodes(const OverlayNetwork *network); /* processes of the topology */
int overlay_node(const OverlayNetwork *network, int node, OverlayNode *node_info);
/* ---- Networks: a back-end, and both ---- */
OverlayNetwork *overlay_attach(const char *connection_file, int backend); /* NULL: by the environment; -1: its rank */
int overlay_backend(const OverlayNetwork *network);                       /* its own number; -1 in the front-end */
int overlay_share(OverlayNetwork *network); /* from now on several threads may use it, each its own streams */
int overlay_flush(OverlayNetwork *network); /* hands what was sent to the kernel; receiving does so, too */
int overlay_fd(const OverlayNetwork *network); /* for poll(), once a receive of 0 seconds has found nothing more */
void overlay_close(OverlayNetwork *network);   /* by the front-end: ends all processes */
/* ---- Communicators and streams ---- */
OverlayComm *overlay_broadcast(OverlayNetwork *network); /* all back-ends; belongs to the network */
OverlayComm *overlay_subset(OverlayNetwork *network, const int *backends, int count);
int overlay_comm_size(const OverlayComm *comm);
void overlay_free_comm(OverlayComm *comm);                             /* streams that were opened over it go on */
enum { OVERLAY_WAIT_FOR_ALL, OVERLAY_TIME_OUT, OVERLAY_DO_NOT_WAIT }; /* when packets from below become a wave */
enum { OVERLAY_CONTINUE, OVERLAY_STOP };                              /* when a back-end is lost */
typedef struct {
  const char *filter; /* none min max sum average concat bin work:SECONDS usage, or FILE.so[@FUNCTION][:ARGUMENT] */
  int sync;
  double seconds; /* of OVERLAY_TIME_OUT, from a wave's first packet at each node */
  int on_loss;
  const char *root, *leaf, *down; /* filters of the front-end, of what back-ends send, of what goes down */
  const char *sync_filter;        /* makes waves in place of `sync` */
} OverlayStreamOptions;
OverlayStream *overlay_open(OverlayComm *comm, const OverlayStreamOptions *options); /* NULL: defaults */
uint32_t overlay_stream_id(const OverlayStream *stream);                             /* the same in all processes */
int overlay_send(OverlayStream *stream, int tag, const char *format, ...); /* waits while the window is full */
int overlay_send_packet(OverlayStream *stream, OverlayPacket *packet);     /* the packet stays the caller's */
int overlay_writable(const OverlayStream *stream);                         /* 1: a send would not wait */
int overlay_recv(OverlayStream *stream, double seconds, OverlayPacket **packet); /* overlay_release() it */
int overlay_recv_any(OverlayNetwork *network, double seconds, OverlayPacket **packet, OverlayStream **stream);
int overlay_set_argument(OverlayStream *stream, const char *argument);     /* of its filters, from now on */
int overlay_missing(const OverlayStream *stream, int *backends, int max_count); /* counts and lists its lost back-ends */
void overlay_close_stream(OverlayStream *stream);
int overlay_ended(const OverlayStream *stream); /* OVERLAY_OK while it goes on, else why it ended */
/* ---- Packets: %c %uc %hd %uhd %d %ud %ld %uld %f %lf %s, and arrays %ac … %as, by pointer and count ---- */
typedef struct {
  union { int64_t d; uint64_t ud; double lf; const char *s; const void *array; };
  uint32_t count; /* elements of an array */
} OverlayValue;
OverlayPacket *overlay_pack(int tag, const char *format, ...);
OverlayPacket *overlay_pack_values(int tag, const char *format, const OverlayValue *values);
int overlay_unpack(OverlayPacket *packet, const char *format, ...);        /* arrays point into the packet */
int overlay_values(OverlayPacket *packet, OverlayValue *values, int max_count); /* how many there are; at most 64 */
const char *overlay_format(const OverlayPacket *packet);
int overlay_tag(const OverlayPacket *packet);
int overlay_source(const OverlayPacket *packet);    /* lowest back-end in it; -1 from the front-end */
int overlay_leaves(const OverlayPacket *packet);    /* of how many back-ends it holds values */
OverlayPacket *overlay_keep(OverlayPacket *packet); /* one more overlay_release() is needed then */
void overlay_release(OverlayPacket *packet);
uint64_t overlay_checksum(const void *bytes, size_t count); /* FNV-1a, by which filter `bin` sorts back-ends */
/* ---- Own filters, in a shared object: int overlay_filter(OverlayWave *), or of another name ---- */
typedef struct {
  OverlayPacket **in; /* one from each child that has one, in the children's order */
  int count, root;    /* packets in; 1 in the front-end */
  const char *argument; void *state; /* of this stream in this process; NULL at first */
} OverlayWave;
typedef struct {      /* of a sync_filter: int FUNCTION(OverlayArrivals *) */
  int count; const int *waiting; /* children; packets of each that are in no wave yet */
  int *take;                     /* to be set to 1: the child's first packet is part of the next wave */
  double since, again;           /* seconds since the last wave (large before the first); to be set: until the next call at the latest */
  const char *argument; void *state;
} OverlayArrivals;
int overlay_emit(OverlayWave *wave, const char *format, const OverlayValue *values); /* one packet upwards */
int overlay_forward(OverlayWave *wave, OverlayPacket *packet);                       /* one that came in, as it is */
int overlay_fail(const char *format, ...); /* sets overlay_error(), returns OVERLAY_FAILED: ends the stream */
#endif
