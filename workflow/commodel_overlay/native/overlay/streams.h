/* streams.h: channels over the tree: waves of packets from below, filters, and flow control by windows.
 *
 * Flow control: on every link, at most `window` bytes of a stream are in flight. A process returns the bytes that it
 * consumes as credit, and consumes only what it can forward. So a slow process slows its sources, streams do not block
 * each other, and memory is bounded by streams × links × window (and one packet more on each).
 *
 * Losses: a process whose parent is lost attaches to an ancestor. No packet may then be lost or received twice. Sent
 * packets are therefore stored until they are safe: upwards until the front-end, or the state of a filter there, has
 * them; downwards until the children of each child have them. Credits report which packets are safe. On the way up, a
 * packet has the number of the back-ends' packets of which it was made. By this number an ancestor knows which packets
 * it has already received through the lost process, and makes the next wave of packets with one number.
 */
#ifndef OVERLAY_STREAMS_H
#define OVERLAY_STREAMS_H

#include "filter.h"
#include "network.h"

typedef struct {
  Neighbour *neighbour;      /* NULL: the link of the front-end to its tool */
  Queue queue;               /* received and not consumed */
  int64_t credit;            /* bytes that may still be sent; a packet may overdraw it */
  uint32_t unreturned_bytes; /* consumed, and not yet returned as credit */
  bool gone;                 /* the child is lost, or sends no more packets of the stream */
  uint64_t sent;             /* packets since the link was made; downwards since the stream was opened */
  uint64_t safe;             /* the first of these, which need no longer be stored */
  uint64_t consumed_packets; /* of its queue, since the link was made */
  uint32_t highest_number;   /* received from all back-ends behind the link */
  OverlayPacket *saved_state; /* the last state of the child's filter; NULL: none */
  uint32_t *highest_number_of; /* by back-end, if single ones are ahead or the child was adopted; else NULL */
} Link;

struct OverlayStream {
  OverlayNetwork *network;
  OverlayStream *next, *next_timed, *next_readable; /* in the lists of its bucket, of timed and of readable streams */
  uint32_t id;
  OverlayStreamOptions options;
  OverlayPacket *opened; /* the packet that opened it */
  char *argument;        /* of its filters, if it was set after the stream was opened; else NULL */
  OverlayComm members;
  Filter filter, down, arranger; /* filter: upwards; in a back-end, of what it sends. arranger: decides about waves */
  int *queued_of, *take;         /* by link, for the arranger; NULL without one */
  double last_wave;              /* time of the last wave */
  Link up;     /* to the parent; its queue has packets from there */
  size_t room; /* number of children for which memory is allocated */
  Link *links; /* to children with back-ends of the stream */
  int nlinks, turn;       /* turn: the link whose packet is next, if waves do not wait */
  int *link_of_child;     /* -1: none */
  int waiting, empty;     /* number of links with packets, and of living links without */
  Origin wave_origin;     /* of the last wave: its back-ends and its number */
  bool state_unsent;      /* the filter's state has changed since it was sent to the parent */
  OverlayPacket **wave;   /* space for one packet of each link */
  Counts counts;
  uint64_t waves;         /* number of waves made */
  uint64_t packets_down;  /* received from the parent or, in the front-end, sent */
  uint32_t packets_sent;  /* by this back-end: the number of its last packet */
  Queue resend_up;        /* sent up, and not yet safe: sent again after a loss of the parent */
  uint64_t in_ancestor;   /* the first packets of these, which an ancestor had before this process attached to it */
  uint64_t last_wave_of_lost; /* the last wave with packets that were received through a lost child */
  Queue resend_down;      /* sent down, and not yet safe: the last ones of packets_down */
  bool rejoined;          /* a child was adopted: links may be at different packet numbers */
  int last_adopted;       /* the last adopted child that has the stream */
  Queue out;              /* results of the filter: to be sent up, or for the front-end's tool */
  double deadline;        /* of a wave; 0: none has begun */
  bool readable, drained; /* drained: and this was reported to the parent */
  int ended;         /* 0, or what receiving and sending return: OVERLAY_CLOSED, OVERLAY_LOST, OVERLAY_FAILED */
  bool end_reported; /* by overlay_recv_any() */
  char *failure;     /* the text for overlay_error() */
};

OverlayStream *stream_of(const OverlayNetwork *network, uint32_t id);
/* `opened` comes from open_packet(). */
OverlayStream *stream_new(OverlayNetwork *network, uint32_t id, OverlayPacket *opened);
OverlayPacket *open_packet(const OverlayStreamOptions *options, const OverlayComm *comm);
int stream_set_argument(OverlayStream *stream, const char *argument); /* in this process and below */
int stream_filter(OverlayStream *stream, Filter *filter, OverlayPacket *packet, Queue *out); /* a single packet */
void stream_free(OverlayStream *stream);
void streams_free(OverlayNetwork *network);

void stream_received(Neighbour *from, OverlayPacket *packet); /* data; takes the reference */
void stream_advance(OverlayStream *stream);                   /* moves waves up and packets down, as far as possible */
bool stream_can_send(const OverlayStream *stream);
void stream_send_down(OverlayStream *stream, OverlayPacket *packet); /* takes the reference; through the filter */
void stream_send_up(OverlayStream *stream, OverlayPacket *packet);
OverlayPacket *stream_take(OverlayStream *stream);                        /* for the tool; NULL: none */
bool stream_reaches(const OverlayStream *stream, const Neighbour *child); /* there are living back-ends of the stream behind it */
void streams_remove_child(OverlayNetwork *network, Neighbour *child);
double streams_deadline(const OverlayNetwork *network);            /* of the next wave; 0: none */
void streams_timed(OverlayNetwork *network);                       /* makes the waves that have timed out */
void stream_end(OverlayStream *stream, int code, const char *why); /* the front-end also ends it below; others report it */
bool stream_has_sources(const OverlayStream *stream);              /* further packets are possible */
int stream_missing(const OverlayStream *stream, int *backends, int max_count); /* counts, and lists, its lost back-ends */
bool stream_has_members(const OverlayStream *stream, int first, int width);
void stream_insert(OverlayStream *stream, Link link);
int stream_grow(OverlayStream *stream); /* allocates memory for all present children */
/* After the loss of the parent, stops sending up until stream_resume(), which sends packets that are not safe again. */
void stream_pause(OverlayStream *stream);
void stream_resume(OverlayStream *stream, const uint32_t *last_numbers); /* by back-end: the number of the last packet received */
/* Adds the link to an adopted child, which has received `packets` packets and not yet consumed `queued` bytes. */
int stream_add_link(OverlayStream *stream, Neighbour *child, uint64_t packets, uint32_t queued);
uint32_t stream_seen(const OverlayStream *stream, int backend);

void on_open(Neighbour *from, OverlayPacket *packet);
void on_shut(Neighbour *from, OverlayPacket *packet);
void on_credit(Neighbour *from, OverlayPacket *packet);
void on_stream_failed(Neighbour *from, OverlayPacket *packet);
void on_argument(Neighbour *from, OverlayPacket *packet);
void on_state(Neighbour *from, OverlayPacket *packet);
void stream_load(OverlayStream *stream, const Neighbour *lost); /* restores the state of the lost child's filter */
void on_drained(Neighbour *from, OverlayPacket *packet);

#endif
