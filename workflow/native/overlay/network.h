/* network.h: a process of the tree: its neighbours, its streams, and the control packets between them.
 *
 * Front-end, internal process and back-end are the same thing: the first has no parent, the last no children, and what
 * comes out of a stream there waits for the tool. All of it runs in one thread, inside of network_turn().
 */
#ifndef OVERLAY_NETWORK_H
#define OVERLAY_NETWORK_H

#include "topology.h"
#include "wire.h"

#include <stdarg.h>
#include <sys/types.h>

enum { DEFAULT_WINDOW = 256 << 10, MOST_ADDRESS = 300, LOOKS = 4 /* for silence, in the time it is allowed */ };

/* What a frame is. Those below DATA are control packets: control.c says what is in them and who may send them. */
typedef enum {
  CONFIG,        /* to an internal process: its sub-tree, and how to start it */
  WELCOME,       /* to a back-end: who it is */
  ADDRESS,       /* up: where processes that others start may attach; down: where this one may */
  TREE_UP,       /* up: all internal processes of a sub-tree are there */
  READY,         /* up: and all its back-ends */
  FAILED,        /* up: start-up failed */
  OPEN,          /* down: a stream */
  SHUT,          /* down: its end: the code that back-ends get, and why */
  ARGUMENT,      /* down: of a stream's filters */
  STATE,         /* up: of a filter, in the format that it likes */
  COUNT,         /* down: what have you counted? */
  COUNTED,       /* up: this, of a stream */
  COUNTED_ALL,   /* up: and that was the last of a sub-tree */
  CREDIT,        /* so many bytes of a stream were consumed */
  LOST,          /* up: back-ends that are gone */
  STREAM_FAILED, /* up: a filter failed */
  DRAINED,       /* up: of a stream nothing more will come, as its back-ends there are lost */
  PING,          /* I am here */
  SHUTDOWN,      /* down: end */
  PROBE,         /* down: what does your clock say? */
  ECHO,          /* up: this */
  SKEW,          /* down: measure the clocks of your children */
  SKEWS,         /* up: how far those of a sub-tree's back-ends are ahead */
  REJOIN,        /* up: the first packet of a process that attaches to an ancestor: what it has of which streams */
  RESUME,        /* down: which of its packets of a stream have come through its lost parent */
  ADOPTED,       /* down: and that was the last stream */
  REATTACHED,    /* up: who has attached to which ancestor */
  DATA
} Kind;

typedef enum { FRONT_END, INTERNAL, BACK_END } Role;
typedef enum { STARTING, RUNNING, ENDING, ENDED } State;

/* What all processes of a network have to know. */
typedef struct {
  char **backend, **launch; /* NULL-ended; NULL: none */
  char *program, *folder;
  double silence;
  uint32_t window;
  int32_t join; /* back-ends may attach while the network runs; those that have not count as lost */
  int32_t one_step; /* one command starts all other processes, which ask the front-end for their parents' addresses */
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
  int node;         /* of the own sub-tree's */
  int first, width; /* the back-ends behind a child */
  bool beats;       /* it is an internal process, which is never silent for long */
  bool attached, tree_up, ready, unflushed, gone;
  bool asked;      /* for its counts, and has not given all of its sub-tree's */
  bool rejoining;  /* it attaches in place of a lost process, or this one to it, and that is not done yet */
  OverlayPacket *rejoin; /* of an adopted child: its first packet, while what was between is not known to be lost */
  int grace;       /* looks for silence until the children of a lost child count as lost, too, or a rejoin is refused */
  double lost_at;  /* when it was found to be lost */
  char *why;       /* it was lost; handled at the end of the turn */
  pid_t process;   /* that this process started for it and has not waited for; 0: none */
  pid_t adopted;   /* that another process had started, on this machine; 0: none */
  Neighbour *next; /* of the unflushed */
};

typedef struct Stranger Stranger; /* a connection that has not said who it is: join.c */
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
  char host[MOST_ADDRESS]; /* where it listens */
  int port;
  Loop loop;
  Watch listener;
  Stranger *strangers;
  Neighbour parent, **children;
  int nchildren, nstarted; /* nstarted: of the topology, in the order of their nodes; behind them the adopted ones */
  char **lineage;          /* HOST PORT of the parent, its parent and so on up to the front-end; NULL there */
  int nlineage, ancestor;  /* ancestor: of the lineage, the next one to attach to when the parent is lost */
  OverlayStream *streams[64]; /* by their number's last bits */
  OverlayStream *timed, *readable;
  uint32_t opened;
  uint64_t arrivals;
  Neighbour *unflushed, *unflushed_last; /* children, each once */
  bool losses;              /* a neighbour has a `why` */
  double patience;          /* of a back-end's receives: 0 where it has not said so yet */
  double started, unlooked; /* unlooked: seconds since it last looked for silence */
  OverlayPhases phases;
  bool *lost;       /* by back-end of the sub-tree */
  int *owner;       /* by back-end of the sub-tree: the child that it is behind, or was when that child was lost */
  char **addresses; /* by node, in a front-end whose back-ends are started by others */
  pid_t step;       /* of the command that starts all; 0: none, or it has ended */
  char *connection_file; /* that lies there now */
  OverlayComm broadcast;
  Counts counts; /* of streams that are no more */
  bool gathering;
  OverlayMetrics *rows; /* of the front-end */
  int nrows;
  OverlayEvent *events; /* a ring; NULL: none yet */
  uint64_t nevents, taken_events;
  void (*on_event)(void *context, const OverlayEvent *event);
  void *event_context;
  int *parent_now; /* of each process, in the front-end */
  Skew *skew;
  Share *share; /* NULL: one thread uses it */
  double clock_ahead; /* seconds that OVERLAY_CLOCKS adds to this process's clock, for tests */
  char failure[512];  /* of start-up */
};

/* ---- network.c ---- */
OverlayNetwork *network_new(Role role);
void network_free(OverlayNetwork *network);
int network_children(OverlayNetwork *network);             /* makes them of the tree */
Neighbour *network_add_child(OverlayNetwork *network, int node);
int network_turn(OverlayNetwork *network, double seconds); /* waits for, and does, whatever comes */
void network_flush(OverlayNetwork *network);
void post(Neighbour *to, OverlayPacket *packet); /* takes the reference; sent when the turn ends */
void post_control(Neighbour *to, Kind kind, uint32_t stream, const char *format, ...);
void network_open_peer(Neighbour *neighbour, int socket);
double network_clock(const OverlayNetwork *network); /* the real time that skew is about */

/* ---- control.c ---- */
void control_received(Peer *peer, OverlayPacket *packet);

/* ---- fault.c ---- */
void neighbour_lost(Peer *peer, const char *why);
void handle_losses(OverlayNetwork *network);
void look_for_silence(OverlayNetwork *network);
void mark_lost(OverlayNetwork *network, const Neighbour *child, int first, int width, const char *why);
void on_lost(Neighbour *from, OverlayPacket *packet);

/* ---- start.c, launch.c, join.c ---- */
int start_children(OverlayNetwork *network); /* listens and starts all at once */
int start_child(Neighbour *child);
int start_step(OverlayNetwork *network, const char *connection_file);
void guide_strangers(OverlayNetwork *network); /* to those of their parents that are there */
int listen_for_children(OverlayNetwork *network);
void stop_listening(OverlayNetwork *network);
void look_for_strangers(OverlayNetwork *network);
void strangers_free(OverlayNetwork *network);
void child_attached(Neighbour *child, int socket);
void note_progress(OverlayNetwork *network); /* tells the parent what of start-up is done */
void start_failed(OverlayNetwork *network, const char *why);
void look_for_failed_starts(OverlayNetwork *network);
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
int attach_to(OverlayNetwork *network, const char *address, double patience); /* HOST PORT, as the node that it is */

/* ---- rejoin.c ---- */
typedef enum { REFUSE, WAIT, ADOPT } Adoption;
Adoption adoption_of(const OverlayNetwork *network, uint32_t node);
void adopt(OverlayNetwork *network, uint32_t node, uint32_t process, int socket, Authentic *authentic);
bool rejoin(OverlayNetwork *network); /* false: no ancestor is left */
void tell_attached(OverlayNetwork *network, const Neighbour *child, double seconds); /* since its parent was lost; or -1 */
int take_lineage(OverlayNetwork *network, const char *const *ancestors, uint32_t count); /* behind the parent */
void on_rejoin(Neighbour *from, OverlayPacket *packet);
void retry_rejoins(OverlayNetwork *network);
void on_resume(Neighbour *from, OverlayPacket *packet);
void on_adopted(Neighbour *from, OverlayPacket *packet);
void on_reattached(Neighbour *from, OverlayPacket *packet);

/* ---- connectionfile.c ---- */
int write_connection_file(OverlayNetwork *network, const char *path);
void remove_connection_file(OverlayNetwork *network);
/* What attach_by() takes, of this back-end; -1: of the rank that this process has in its job. What attaches there. */
Role read_connection_file(const char *path, int number, char attach[static MOST_ADDRESS + 110]);

/* ---- share.c ---- */
void share_lock(Share *share);
void share_unlock(Share *share);
bool other_turns(const OverlayNetwork *network);
void await_turn(OverlayNetwork *network, double seconds);
void let_go(OverlayNetwork *network);
void take_back(OverlayNetwork *network);
void turn_done(OverlayNetwork *network);
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
void skew_without(OverlayNetwork *network, const Neighbour *lost); /* NULL: back-ends further below */

/* What public functions do first and last: nothing, unless threads share the network. */
static inline void enter(const OverlayNetwork *network)
{
  if (network->share) share_lock(network->share);
}

static inline void leave(const OverlayNetwork *network)
{
  if (network->share) share_unlock(network->share);
}

#endif
