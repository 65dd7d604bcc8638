/* network.h: a process of the tree: its neighbours, its streams, and the control packets between them.
 *
 * Front-end, internal process and back-end have one structure: the front-end has no parent, a back-end no children, and
 * results of a stream there wait for the tool. Everything runs in one thread, inside of network_progress().
 */
#ifndef OVERLAY_NETWORK_H
#define OVERLAY_NETWORK_H

#include "topology.h"
#include "wire.h"

#include <stdarg.h>
#include <sys/types.h>

enum { DEFAULT_WINDOW = 256 << 10, MAX_ADDRESS = 300, SILENCE_CHECKS = 4 /* within the time limit of silence */ };

/* The kind of a frame. Those before DATA are control packets: control.c lists their formats and senders. */
typedef enum {
  CONFIG,        /* to an internal process: its sub-tree, and the command that starts it */
  WELCOME,       /* to a back-end: its number */
  ADDRESS,       /* up: addresses to which processes started by others may attach; down: the address for this one */
  TREE_UP,       /* up: all internal processes of a sub-tree have attached */
  READY,         /* up: all back-ends of it, too */
  FAILED,        /* up: start-up failed */
  OPEN,          /* down: opens a stream */
  SHUT,          /* down: ends a stream: the code for back-ends, and the reason */
  ARGUMENT,      /* down: of a stream's filters */
  STATE,         /* up: of a filter, in a format of its choice */
  COUNT,         /* down: request of all counts */
  COUNTED,       /* up: the counts of a stream */
  COUNTED_ALL,   /* up: the end of the counts of a sub-tree */
  CREDIT,        /* number of bytes of a stream that were consumed, and of safe packets */
  LOST,          /* up: lost back-ends */
  STREAM_FAILED, /* up: a filter failed */
  DRAINED,       /* up: a stream has no further packets, since its back-ends there are lost */
  PING,          /* a heartbeat */
  SHUTDOWN,      /* down: end */
  PROBE,         /* down: request of the clock */
  ECHO,          /* up: the clock */
  SKEW,          /* down: measure the clocks of your children */
  SKEWS,         /* up: by how much the clocks of a sub-tree's back-ends are ahead */
  REJOIN,        /* up: the first packet of a process that attaches to an ancestor: the packets that it has of each stream */
  RESUME,        /* down: its packets of a stream that were received through its lost parent */
  ADOPTED,       /* down: the end of these */
  REATTACHED,    /* up: a process has attached to an ancestor */
  DATA
} Kind;

typedef enum { FRONT_END, INTERNAL, BACK_END } Role;
typedef enum { STARTING, RUNNING, ENDING, ENDED } State;

/* Settings of all processes of a network. */
typedef struct {
  char **backend, **launch; /* NULL-ended; NULL: none */
  char *program, *folder;
  double silence_seconds; /* without a response, after which a process counts as lost */
  uint32_t window;
  int32_t join; /* back-ends may attach while the network runs; until then they count as lost */
  int32_t one_step; /* one command starts all other processes, which request their parents' addresses from the front-end */
} Settings;

enum { PACKETS_UP, PACKETS_DOWN, BYTES_UP, BYTES_DOWN, WAVES, COUNTS };
typedef struct {
  uint64_t of[COUNTS];
  double filter_seconds;
} Counts;

typedef struct Neighbour Neighbour;
struct Neighbour {
  Peer peer; /* first: a Neighbour is a Peer */
  OverlayNetwork *network;
  int index;        /* of a child; -1: the parent */
  int node;         /* number in the sub-tree of this process */
  int first, width; /* the back-ends behind a child */
  bool is_internal; /* an internal process, which sends heartbeats */
  bool attached, tree_up, ready, unflushed, gone;
  bool counts_requested; /* and not all counts of its sub-tree have arrived */
  bool rejoining;  /* attaching in place of a lost process, or as new parent, has begun and not ended */
  OverlayPacket *rejoin; /* first packet of an adopted child, until the loss of the processes between is known */
  int silence_checks_left; /* until the children of a lost child count as lost, too, or a rejoin is refused */
  double lost_at;  /* time at which the loss was found */
  char *why;       /* the reason of its loss, which is handled at the end of the event loop's iteration; NULL: not lost */
  pid_t process;   /* of the command that started it, if not yet waited for; 0: none */
  pid_t adopted;   /* of an adopted process on this machine; 0: none */
  Neighbour *next; /* in the list of unflushed ones */
};

typedef struct Stranger Stranger; /* a connection whose process has not yet identified itself: join.c */
typedef struct Skew Skew;         /* skew.c */
typedef struct Share Share;       /* share.c */

struct OverlayComm {
  OverlayNetwork *network;
  uint32_t *ranges; /* first, count, first, count …, ascending */
  uint32_t pairs, size;
};

struct OverlayNetwork {
  Role role;
  State state;
  Topology *tree;                 /* the sub-tree under this process, which is its node 0; NULL in a back-end */
  uint32_t node, first, backends; /* its number in the whole tree, its first back-end, how many the network has */
  Settings settings;
  unsigned char token[TOKEN_BYTES];
  bool authenticates; /* packets have tags */
  char host[MAX_ADDRESS]; /* on which it listens */
  int port;
  Loop loop;
  Watch listener;
  Stranger *strangers;
  Neighbour parent, **children;
  int nchildren, nstarted; /* nstarted: children by the topology, in the order of nodes; adopted children follow */
  char **lineage;          /* HOST PORT of the parent, its parent and so on up to the front-end; NULL there */
  int nlineage, ancestor;  /* ancestor: index in the lineage of the next one to attach to after a loss of the parent */
  OverlayStream *streams[64]; /* hash table by the last bits of their numbers */
  OverlayStream *timed, *readable;
  uint32_t opened;
  uint64_t arrivals;
  Neighbour *unflushed, *unflushed_last; /* children, each once */
  bool has_losses;          /* a neighbour has a `why` */
  double receive_timeout;   /* of the parent's socket in a back-end, in seconds; 0: not set */
  double started, since_silence_check; /* seconds */
  OverlayPhases phases;
  bool *lost;       /* by back-end of the sub-tree */
  int *owner;       /* by back-end of the sub-tree: its child, or the lost child that it had */
  char **addresses; /* by node, in a front-end whose back-ends are started by others */
  pid_t step;       /* of the command that starts all processes; 0: none, or it has ended */
  char *connection_file; /* path of the one written; NULL: none */
  OverlayComm broadcast;
  Counts counts; /* of closed streams */
  bool gathering;
  OverlayMetrics *rows; /* of the front-end */
  int nrows;
  OverlayEvent *events; /* a ring; NULL: none yet */
  uint64_t nevents, taken_events;
  void (*on_event)(void *context, const OverlayEvent *event);
  void *event_context;
  int *parent_now; /* in the front-end: the present parent of each process */
  Skew *skew;
  Share *share; /* NULL: one thread uses it */
  double clock_ahead; /* seconds that OVERLAY_CLOCKS adds to this process's clock, for tests */
  char failure[512];  /* of start-up */
};

/* ---- network.c ---- */
OverlayNetwork *network_new(Role role);
void network_free(OverlayNetwork *network);
int network_children(OverlayNetwork *network);             /* creates the children of the tree */
Neighbour *network_add_child(OverlayNetwork *network, int node);
int network_progress(OverlayNetwork *network, double seconds); /* waits for events and handles them */
void network_flush(OverlayNetwork *network);
void post(Neighbour *to, OverlayPacket *packet); /* takes the reference; sent when the event loop's iteration ends */
void post_control(Neighbour *to, Kind kind, uint32_t stream, const char *format, ...);
void network_open_peer(Neighbour *neighbour, int socket);
double network_clock(const OverlayNetwork *network); /* the real time whose skew is measured */

/* ---- control.c ---- */
void control_received(Peer *peer, OverlayPacket *packet);

/* ---- fault.c ---- */
void neighbour_lost(Peer *peer, const char *why);
void handle_losses(OverlayNetwork *network);
void check_silence(OverlayNetwork *network);
void mark_lost(OverlayNetwork *network, const Neighbour *child, int first, int width, const char *why);
void on_lost(Neighbour *from, OverlayPacket *packet);

/* ---- start.c, launch.c, join.c ---- */
int start_children(OverlayNetwork *network); /* listens and starts all at once */
int start_child(Neighbour *child);
int start_step(OverlayNetwork *network, const char *connection_file);
void send_parent_addresses(OverlayNetwork *network); /* of parents that have attached */
int listen_for_children(OverlayNetwork *network);
void stop_listening(OverlayNetwork *network);
void check_strangers(OverlayNetwork *network);
void strangers_free(OverlayNetwork *network);
void child_attached(Neighbour *child, int socket);
void report_start_progress(OverlayNetwork *network); /* reports the progress of start-up to the parent */
void start_failed(OverlayNetwork *network, const char *why);
void check_failed_starts(OverlayNetwork *network);
void on_config(Neighbour *from, OverlayPacket *packet);
void on_welcome(Neighbour *from, OverlayPacket *packet);
void on_address(Neighbour *from, OverlayPacket *packet);
void on_tree_up(Neighbour *from, OverlayPacket *packet);
void on_ready(Neighbour *from, OverlayPacket *packet);
void on_failed(Neighbour *from, OverlayPacket *packet);

/* ---- backend.c ---- */
void drain(OverlayNetwork *network);

/* ---- attach.c ---- */
int attach_by(OverlayNetwork *network, const char *attach); /* HOST PORT NODE TOKEN */
int attach_to(OverlayNetwork *network, const char *address, double patience); /* HOST PORT, as the node of this process */

/* ---- rejoin.c ---- */
typedef enum { REFUSE, WAIT, ADOPT } Adoption;
Adoption adoption_of(const OverlayNetwork *network, uint32_t node);
void adopt(OverlayNetwork *network, uint32_t node, uint32_t process, int socket, Authentic *authentic);
bool rejoin(OverlayNetwork *network); /* false: no ancestor is left */
void report_attached(OverlayNetwork *network, const Neighbour *child, double seconds); /* since its parent was lost; or -1 */
int take_lineage(OverlayNetwork *network, const char *const *ancestors, uint32_t count); /* behind the parent */
void on_rejoin(Neighbour *from, OverlayPacket *packet);
void retry_rejoins(OverlayNetwork *network);
void on_resume(Neighbour *from, OverlayPacket *packet);
void on_adopted(Neighbour *from, OverlayPacket *packet);
void on_reattached(Neighbour *from, OverlayPacket *packet);

/* ---- connectionfile.c ---- */
int write_connection_file(OverlayNetwork *network, const char *path);
void remove_connection_file(OverlayNetwork *network);
/* Reads the argument of attach_by() for a back-end; -1: for the rank of this process in its job. Returns its role;
 * FRONT_END: failed. */
Role read_connection_file(const char *path, int number, char attach[static MAX_ADDRESS + 110]);

/* ---- share.c ---- */
void share_lock(Share *share);
void share_unlock(Share *share);
bool another_thread_waits(const OverlayNetwork *network);
void await_other_thread(OverlayNetwork *network, double seconds);
void unlock_while_waiting(OverlayNetwork *network); /* before a wait for sockets */
void lock_after_waiting(OverlayNetwork *network);
void wake_waiting_threads(OverlayNetwork *network); /* after the events of the wait were handled */
void share_free(OverlayNetwork *network);

/* ---- observe.c ---- */
void add_counts(Counts *sum, const Counts *more);
void gather_on(OverlayNetwork *network);
void note_event(OverlayNetwork *network, OverlayEvent event, const char *why);
void note_parent(OverlayNetwork *network, int node, int parent);
void on_count(Neighbour *from, OverlayPacket *packet);
void on_counted(Neighbour *from, OverlayPacket *packet);
void on_counted_all(Neighbour *from, OverlayPacket *packet);

/* ---- end.c ---- */
void end_children(OverlayNetwork *network);
void on_shutdown(Neighbour *from, OverlayPacket *packet);

/* ---- skew.c ---- */
void on_probe(Neighbour *from, OverlayPacket *packet);
void on_echo(Neighbour *from, OverlayPacket *packet);
void on_skew(Neighbour *from, OverlayPacket *packet);
void on_skews(Neighbour *from, OverlayPacket *packet);
void skew_remove_child(OverlayNetwork *network, const Neighbour *lost); /* NULL: back-ends further below */

/* Begin and end of public functions: they lock the network if threads share it. */
static inline void enter(const OverlayNetwork *network)
{
  if (network->share) share_lock(network->share);
}

static inline void leave(const OverlayNetwork *network)
{
  if (network->share) share_unlock(network->share);
}

#endif
