/* streams.h: channels over the tree: waves out of packets from below, filters, and windows that hold fast senders.
 *
 * On every link a stream may have `window` bytes under way. What a process consumes it gives back as credit, and it
 * consumes only what it can hand on: so a slow process holds its sources, one stream never holds another, and memory
 * is bounded by streams × links × window (and one packet more on each).
 *
 * A process whose parent is lost attaches to an ancestor, and no packet may get lost or come twice then. So whoever may
 * lose its parent keeps what it has sent up until it is in the front-end, or in what a filter there keeps of it, and
 * whoever may get the children of a lost child keeps what it has sent down until they have it; credits say so. On the way
 * up a packet has the number of the back-ends' packets that it was made of. By these the ancestor knows what has come to
 * it through the lost process; and the next wave is made of packets of one number.
 */
#ifndef OVERLAY_STREAMS_H
#define OVERLAY_STREAMS_H

#include "filter.h"
#include "network.h"

typedef struct {
  Neighbour *neighbour; /* NULL: of the front-end upwards */
  Queue queue;          /* received and not consumed */
  int64_t credit;       /* bytes that may still be sent; a packet may overdraw it */
  uint32_t owed;        /* consumed, and not given back yet */
  bool gone;
  uint64_t sent;  /* packets, since the link was made; downwards since the stream was opened */
  uint64_t safe;  /* of these, from the first on, what needs to be kept no longer */
  uint64_t taken; /* packets of its queue, since the link was made */
  uint32_t seen;  /* the highest number that came from all back-ends behind it; and of each, where packets of single ones */
  OverlayPacket *saved; /* the last state of its filter; NULL: none */
  uint32_t *seen_of; /* come through an internal process, or the child was adopted; else NULL */
} Link;

struct OverlayStream {
  OverlayNetwork *network;
  OverlayStream *next, *next_timed, *next_readable; /* of the same bucket; of those that time out; of the readable */
  uint32_t id;
  OverlayStreamOptions options;
  OverlayPacket *opened; /* the packet by which it was */
  char *argument;        /* that its filters were given since; NULL: none */
  OverlayComm members;
  Filter filter, down, arranger; /* filter: in a back-end, of what it sends */
  int *waiting_of, *take;        /* by link, for the arranger; NULL without one */
  double last_wave;              /* when it was */
  Link up;     /* its queue: what came from the parent */
  size_t room; /* children that there is room for here */
  Link *links; /* to children with back-ends of it */
  int nlinks, turn;
  int *of_child;        /* link by child; -1: none */
  int waiting, empty;   /* links with packets; living links without */
  Origin of_wave;       /* whose packets were in the last one */
  bool unsaved;         /* the parent is to get the filter's state after it */
  OverlayPacket **wave; /* room for one of each link */
  Counts counts;
  uint64_t waves;       /* that were made */
  uint64_t downs;       /* packets that were received from the parent or, in the front-end, sent */
  uint32_t ups;         /* packets that this back-end has sent: the number of the last */
  Queue kept;           /* sent up, and perhaps to be sent again */
  uint64_t came;        /* of these, the first, what an ancestor had got before this process attached to it */
  uint64_t last_of_lost; /* the last wave with packets that came through a lost child */
  Queue held;           /* sent down, and perhaps to be sent again: the last of `downs` */
  bool rejoined;        /* a child was adopted: links may be at different numbers */
  int asked_by;         /* the last adopted child that had it */
  Queue out;            /* what the filter gave: to be sent up, or for the front-end's tool */
  double deadline;      /* of a wave; 0: none has begun */
  bool readable, drained; /* drained: and the parent was told so */
  int ended;     /* 0, or what receiving and sending return: OVERLAY_CLOSED, OVERLAY_LOST, OVERLAY_FAILED */
  bool told;     /* overlay_recv_any() has */
  char *failure; /* what overlay_error() says then */
};

OverlayStream *stream_of(const OverlayNetwork *network, uint32_t id);
/* Of the packet that opens it: open_packet(). */
OverlayStream *stream_new(OverlayNetwork *network, uint32_t id, OverlayPacket *opened);
OverlayPacket *open_packet(const OverlayStreamOptions *options, const OverlayComm *comm);
int stream_set_argument(OverlayStream *stream, const char *argument); /* here, and below */
int stream_filter(OverlayStream *stream, Filter *filter, OverlayPacket *packet, Queue *out); /* a single packet */
void stream_free(OverlayStream *stream);
void streams_free(OverlayNetwork *network);

void stream_received(Neighbour *from, OverlayPacket *packet); /* data; takes the reference */
void stream_advance(OverlayStream *stream);                   /* does what can be done: waves up, packets down */
bool stream_can_send(const OverlayStream *stream);
void stream_send_down(OverlayStream *stream, OverlayPacket *packet); /* takes the reference; through the filter */
void stream_send_up(OverlayStream *stream, OverlayPacket *packet);
OverlayPacket *stream_take(OverlayStream *stream);                        /* for the tool; NULL: nothing there */
bool stream_reaches(const OverlayStream *stream, const Neighbour *child); /* living back-ends of its own behind it */
void streams_without(OverlayNetwork *network, Neighbour *child);
double streams_deadline(const OverlayNetwork *network);            /* the next one of a wave; 0: none */
void streams_timed(OverlayNetwork *network);                       /* waves whose time has come */
void stream_end(OverlayStream *stream, int code, const char *why); /* here, and below */
bool stream_has_sources(const OverlayStream *stream);              /* something may still come */
int stream_missing(const OverlayStream *stream, int *backends, int most); /* counts, and lists, its lost back-ends */
bool stream_has_members(const OverlayStream *stream, int first, int width);
void stream_insert(OverlayStream *stream, Link link);
int stream_grow(OverlayStream *stream); /* room for all children that there are */
/* With its parent lost: nothing is sent up until stream_resume(), which sends again what has not come through. */
void stream_pause(OverlayStream *stream);
void stream_resume(OverlayStream *stream, const uint32_t *seen); /* by back-end: the number of the last that has */
/* An adopted child that has got so many packets, `queued` bytes of which it has not consumed. */
int stream_add_link(OverlayStream *stream, Neighbour *child, uint64_t downs, uint32_t queued);
uint32_t stream_seen(const OverlayStream *stream, int backend);

void on_open(Neighbour *from, OverlayPacket *packet);
void on_shut(Neighbour *from, OverlayPacket *packet);
void on_credit(Neighbour *from, OverlayPacket *packet);
void on_stream_failed(Neighbour *from, OverlayPacket *packet);
void on_argument(Neighbour *from, OverlayPacket *packet);
void on_state(Neighbour *from, OverlayPacket *packet);
void stream_load(OverlayStream *stream, const Neighbour *lost); /* what its filter's state was */
void on_drained(Neighbour *from, OverlayPacket *packet);

#endif
