/* tcp.c: simulates a schedule whose messages TCP sends through the ports of one switch, packet by packet.
 *
 * A sender's port sends a packet every g_s. The port to a receiver forwards one every g_r, and its buffer has B_L packets.
 * A packet that arrives at a full buffer is lost. TCP then behaves as that of Linux, with Reno's congestion control:
 *
 *   - the window begins with 10 packets, doubles in slow start, then grows by one a round trip (RFC 5681, RFC 6928);
 *   - a packet counts as lost if three others have been acknowledged, one of them sent later; with fewer, two ticks of the
 *     clock later (RACK, RFC 8985);
 *   - a loss halves the window, and packets are sent again in proportion to those that arrive (PRR, RFC 6937);
 *   - if nothing arrives, a new packet, or else the last one again, is sent after two round trips and two ticks (tail loss
 *     probe, RFC 8985), unless only one is in flight, or packets have been lost already;
 *   - every second packet that arrives in order is acknowledged at once, a single one 40 ms later;
 *   - after a timeout all unacknowledged packets are sent again, with a window of one packet; the next timeout is twice as
 *     long.
 *
 * MPI sends the first part of a long message, and the rest when the receiver has granted it.
 *
 * Each repeat starts with the windows at the end of the previous one. Ranks start with random delays. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "events.h"

enum { OPEN, RECOVERY, LOSS };            /* states of a connection */
enum { SACKED = 1, LOST = 2, RESENT = 4 }; /* flags of a packet; RESENT: sent again, and in flight */
enum { ARRIVES, DELIVERED, ACKNOWLEDGED, TIMER, ACK_TIMER, GRANTED, START }; /* events */
enum { RETRANSMIT, PROBE, REORDER };                                        /* timers */
enum { DONE, DEADLOCKED };                                                  /* of a repeat */
enum { INITIAL_WINDOW = 10, LEAST_THRESHOLD = 2, DUPLICATES = 3 };          /* packets */
static const double tick = 4e-3;       /* s: of Linux's timers at 250 Hz */
static const double ack_delay = 40e-3; /* s: of an acknowledgement of a single packet */
static const double write_ahead = 3.2; /* windows that a sender may write ahead: tcp_sndbuf_expand of Linux */

/* Parameters of the machine, and columns of the schedule by message, in the order of their steps. */
typedef struct {
    int64_t ranks, messages, repeats, warmup; /* warmup: previous repeats, which only set the windows */
    uint64_t seed;
    double gap_out, gap_in, packet_latency, ack_latency; /* s: g_s and g_r of a full packet, latencies of a packet and of its acknowledgement */
    double buffer, timeout, skew, jitter; /* packets; s: minimum timeout, largest random delays of a rank's start and of a packet */
    const int64_t *src, *dst, *step, *wait, *packets, *eager; /* eager: packets sent before the receiver grants the rest */
    const double *last_out, *last_in; /* s: g_s and g_r of the last packet */
    double *finish;                   /* by repeat and rank */
    int64_t *timeouts, *drops;        /* by repeat */
} Tcp;

typedef struct {
    double sent;    /* time of its last transmission */
    int64_t number; /* of this transmission, in the order of all */
    int64_t message;
    uint8_t flags, last, before_grant, arrived; /* last: of its message; before_grant: the last before a grant */
} Packet;

typedef struct {
    int64_t src, dst;
    Packet *packets;
    int64_t next, una, limit, total, received; /* sent, acknowledged, written, in all, received in order */
    int64_t sacked, lost, resent, newest;       /* packets; the latest that has arrived, by its number */
    int state, backoff, probing;
    double window, threshold, trip, spread; /* packets; s: the smoothed round trip and its deviation */
    int64_t end;                            /* of a recovery */
    double flight, delivered, out;          /* of PRR: the window before the loss; packets since */
    int64_t timer;                          /* number of the current timer; older ones are invalid */
    double idle;                            /* since */
    int64_t acknowledged, out_of_order;                /* what the receiver has acknowledged; packets out of order */
} Flow;

/* The action of an event. `upto`: the acknowledged packets, or the number of a timer. */
typedef struct {
    int64_t kind, of, packet, upto;
} Action;

/* Messages of each rank, in the order of their steps: those of rank r are rows[first[r]] to rows[first[r + 1]]. */
typedef struct {
    int64_t *rows, *first, *at;
} Rows;

typedef struct {
    const Tcp *tcp;
    Flow *flows;
    int64_t flow_count;
    int64_t *flow_of, *end_of; /* by message: its connection, and the packet after its last one there */
    Rows sends, receives;
    int64_t *pending; /* by rank: messages that its step waits for */
    uint8_t *buffered, *delivered, *awaited; /* by message */
    double *out_free, *in_free, *finish;     /* by rank */
    Heap heap;
    Action *actions;
    int64_t action_capacity, *unused, unused_count;
    int64_t order, number, done, timeouts, drops;
    uint64_t random;
    int failed;
} Switch;

static double draw_uniform(Switch *net)
{
    net->random ^= net->random >> 12;
    net->random ^= net->random << 25;
    net->random ^= net->random >> 27;
    return (double)((net->random * UINT64_C(2685821657736338717)) >> 11) * 0x1p-53;
}

static void schedule(Switch *net, double time, Action actions)
{
    if (net->unused_count == 0) {
        int64_t capacity = 2 * net->action_capacity + 256;
        Action *grown = realloc(net->actions, (size_t)capacity * sizeof *grown);
        if (grown) net->actions = grown;
        int64_t *unused = grown ? realloc(net->unused, (size_t)capacity * sizeof *unused) : NULL;
        if (unused == NULL) {
            net->failed = 1;
            return;
        }
        net->unused = unused;
        while (net->action_capacity < capacity) net->unused[net->unused_count++] = net->action_capacity++;
    }
    int64_t at = net->unused[--net->unused_count];
    net->actions[at] = actions;
    if (push(&net->heap, (Event){time, (uint32_t)++net->order, (uint32_t)at}) != 0) net->failed = 1;
}

static double minimum(double one, double other) { return one < other ? one : other; }
static double maximum(double one, double other) { return one > other ? one : other; }

static double find_timeout(const Switch *net, const Flow *flow)
{
    double wait = flow->trip + maximum(net->tcp->timeout, 4 * flow->spread);
    return ldexp(wait, flow->backoff < 9 ? flow->backoff : 9);
}

static void start_timer(Switch *net, Flow *flow, int kind, double at)
{
    schedule(net, (floor(at / tick) + 1) * tick, (Action){TIMER, flow - net->flows, kind, ++flow->timer});
}

/* A timeout, or sooner a probe for a lost tail. */
static void set_timer(Switch *net, Flow *flow, double now)
{
    flow->timer++;
    if (flow->una == flow->next) return;
    double wait = find_timeout(net, flow);
    int64_t outstanding = flow->next - flow->una;
    int probe = flow->state == OPEN && flow->sacked == 0 && !flow->probing && flow->trip > 0;
    double probe_wait = 2 * flow->trip + (outstanding == 1 ? net->tcp->timeout : 2 * tick);
    flow->backoff = flow->state == LOSS ? flow->backoff : 0;
    probe = probe && probe_wait < wait;
    start_timer(net, flow, probe ? PROBE : RETRANSMIT, now + (probe ? probe_wait : wait));
}

static void transmit(Switch *net, Flow *flow, int64_t number, double now)
{
    const Tcp *tcp = net->tcp;
    Packet *packet = &flow->packets[number];
    double start = maximum(now, net->out_free[flow->src]);
    net->out_free[flow->src] = start + (packet->last ? tcp->last_out[packet->message] : tcp->gap_out);
    packet->sent = now;
    packet->number = ++net->number;
    flow->out++;
    schedule(net, start + tcp->packet_latency + tcp->jitter * draw_uniform(net), (Action){ARRIVES, flow - net->flows, number, 0});
}

/* Packets in flight. */
static int64_t count_in_flight(const Flow *flow) { return flow->next - flow->una - flow->sacked - flow->lost + flow->resent; }

static void send_more(Switch *net, Flow *flow, double now)
{
    int sent = 0;
    int64_t lost = flow->una;
    while (count_in_flight(flow) < (int64_t)flow->window) {
        if (flow->lost > flow->resent) {
            while (lost < flow->next && (flow->packets[lost].flags & (LOST | RESENT | SACKED)) != LOST) lost++;
        } else {
            lost = flow->next;
        }
        if (lost < flow->next) {
            flow->packets[lost].flags |= RESENT;
            flow->resent++;
            transmit(net, flow, lost, now);
        } else if (flow->next < flow->limit) {
            transmit(net, flow, flow->next++, now);
        } else {
            break;
        }
        sent = 1;
    }
    if (sent) set_timer(net, flow, now);
}

static void advance(Switch *net, int64_t rank, double now);

/* A sender continues when all of a message but what its system buffers has been acknowledged. */
static void check_buffered(Switch *net, Flow *flow, double now)
{
    const Tcp *tcp = net->tcp;
    Rows *sends = &net->sends;
    double limit = write_ahead * maximum(flow->window, INITIAL_WINDOW);
    for (int64_t at = sends->first[flow->src]; at < sends->at[flow->src]; at++) {
        int64_t row = sends->rows[at];
        if (net->buffered[row] || &net->flows[net->flow_of[row]] != flow) continue;
        if ((double)(net->end_of[row] - flow->una) > limit) return;
        net->buffered[row] = 1;
        if (--net->pending[flow->src] == 0) advance(net, tcp->src[row], now);
    }
}

/* Passes packets of a message to TCP: the first part, or the rest. */
static void write_packets(Switch *net, int64_t row, int64_t count, int last, double now)
{
    Flow *flow = &net->flows[net->flow_of[row]];
    if (flow->una == flow->next && now - flow->idle > find_timeout(net, flow) && flow->window > INITIAL_WINDOW)
        flow->window = INITIAL_WINDOW; /* after idle */
    for (int64_t packet = 0; packet < count; packet++) {
        int end = packet == count - 1;
        flow->packets[flow->limit + packet] = (Packet){.message = row, .last = end && last, .before_grant = end && !last};
    }
    flow->limit += count;
    net->end_of[row] = last ? flow->limit : INT64_MAX;
    send_more(net, flow, now);
}

static void write_message(Switch *net, int64_t row, double now)
{
    const Tcp *tcp = net->tcp;
    write_packets(net, row, tcp->eager[row], tcp->eager[row] == tcp->packets[row], now);
}

/* Executes the steps of a rank until it has to wait. */
static void advance(Switch *net, int64_t rank, double now)
{
    const Tcp *tcp = net->tcp;
    Rows *sends = &net->sends, *receives = &net->receives;
    while (net->pending[rank] == 0) {
        int64_t send = sends->at[rank], receive = receives->at[rank], step = INT64_MAX;
        if (send < sends->first[rank + 1]) step = tcp->step[sends->rows[send]];
        if (receive < receives->first[rank + 1] && tcp->wait[receives->rows[receive]] < step) step = tcp->wait[receives->rows[receive]];
        if (step == INT64_MAX) {
            if (net->finish[rank] < 0) net->done++;
            net->finish[rank] = now;
            return;
        }
        net->pending[rank] = 1; /* the rank must not continue before all are posted */
        for (; receives->at[rank] < receives->first[rank + 1] && tcp->wait[receives->rows[receives->at[rank]]] == step; receives->at[rank]++) {
            int64_t row = receives->rows[receives->at[rank]];
            net->awaited[row] = 1;
            net->pending[rank] += !net->delivered[row];
        }
        for (; sends->at[rank] < sends->first[rank + 1] && tcp->step[sends->rows[sends->at[rank]]] == step; sends->at[rank]++) {
            int64_t row = sends->rows[sends->at[rank]];
            write_message(net, row, now);
            Flow *flow = &net->flows[net->flow_of[row]];
            if ((double)(net->end_of[row] - flow->una) <= write_ahead * maximum(flow->window, INITIAL_WINDOW)) net->buffered[row] = 1;
            net->pending[rank] += !net->buffered[row];
        }
        net->pending[rank]--;
    }
}

static void arrive(Switch *net, Flow *flow, int64_t number, double now)
{
    const Tcp *tcp = net->tcp;
    const Packet *packet = &flow->packets[number];
    double wait = maximum(0, net->in_free[flow->dst] - now);
    if (wait > tcp->buffer * tcp->gap_in) {
        net->drops++;
        return;
    }
    net->in_free[flow->dst] = now + wait + (packet->last ? tcp->last_in[packet->message] : tcp->gap_in);
    schedule(net, now + wait, (Action){DELIVERED, flow - net->flows, number, 0});
}

static void send_ack(Switch *net, Flow *flow, int64_t number, double now)
{
    flow->acknowledged = flow->received;
    schedule(net, now + net->tcp->ack_latency, (Action){ACKNOWLEDGED, flow - net->flows, number, flow->received});
}

static void deliver(Switch *net, Flow *flow, int64_t number, double now)
{
    const Tcp *tcp = net->tcp;
    int64_t before = flow->received;
    int new = !flow->packets[number].arrived, in_order = number == before && flow->out_of_order == 0;
    flow->packets[number].arrived = 1;
    flow->out_of_order += new;
    while (flow->received < flow->limit && flow->packets[flow->received].arrived) {
        const Packet *packet = &flow->packets[flow->received++];
        flow->out_of_order--;
        if (packet->before_grant) schedule(net, now + tcp->ack_latency, (Action){GRANTED, flow - net->flows, packet->message, 0});
        if (!packet->last) continue;
        net->delivered[packet->message] = 1;
        if (net->awaited[packet->message] && --net->pending[flow->dst] == 0) advance(net, flow->dst, now);
    }
    if (in_order && flow->received - flow->acknowledged < 2)
        schedule(net, now + ack_delay, (Action){ACK_TIMER, flow - net->flows, number, flow->received});
    else
        send_ack(net, flow, number, now);
}

static void clear_flags(Flow *flow, Packet *packet)
{
    flow->sacked -= (packet->flags & SACKED) != 0;
    flow->lost -= (packet->flags & LOST) != 0;
    flow->resent -= (packet->flags & RESENT) != 0;
}

static void begin_recovery(Flow *flow)
{
    flow->state = RECOVERY;
    flow->flight = flow->window;
    flow->threshold = maximum(floor(flow->window / 2), LEAST_THRESHOLD);
    flow->end = flow->next;
    flow->delivered = flow->out = 0;
}

/* The window in a recovery, after so many packets were found to have arrived (PRR). */
static void reduce_window(Flow *flow, int64_t delivered, int advanced, int lost)
{
    double grown, pipe = (double)count_in_flight(flow);
    flow->delivered += (double)delivered;
    if (pipe > flow->threshold) grown = ceil(flow->delivered * flow->threshold / flow->flight) - flow->out;
    else {
        grown = maximum(flow->delivered - flow->out, (double)delivered) + (advanced && !lost);
        grown = minimum(flow->threshold - pipe, grown);
    }
    flow->window = pipe + maximum(grown, flow->out > 0 ? 0 : 1);
}

static void grow_window(Flow *flow, int64_t delivered, int64_t outstanding)
{
    if (flow->window < flow->threshold) {
        if (flow->window < 2 * (double)outstanding) flow->window = minimum(flow->window + (double)delivered, maximum(flow->threshold, flow->window));
    } else if ((double)outstanding >= floor(flow->window)) {
        flow->window += (double)delivered / flow->window;
    }
}

/* Returns whether packets are lost, and marks them if `mark`. */
static int find_lost(Flow *flow, int mark)
{
    int found = 0;
    for (int64_t number = flow->una; number < flow->next; number++) {
        Packet *packet = &flow->packets[number];
        if (packet->flags & SACKED || packet->number >= flow->newest || (packet->flags & (LOST | RESENT)) == LOST) continue;
        found = 1;
        if (!mark) break;
        if (packet->flags & RESENT) flow->resent--;
        if (!(packet->flags & LOST)) flow->lost++;
        packet->flags = LOST;
    }
    return found;
}

static void update_round_trip(Flow *flow, double trip)
{
    if (flow->trip == 0) {
        flow->trip = trip;
        flow->spread = trip / 2;
    }
    flow->spread += (fabs(trip - flow->trip) - flow->spread) / 4;
    flow->trip += (trip - flow->trip) / 8;
}

static void acknowledge(Switch *net, Flow *flow, int64_t number, int64_t upto, double now)
{
    int64_t outstanding = flow->next - flow->una, delivered = 0;
    int advanced = upto > flow->una;
    Packet *packet = &flow->packets[number];
    if (number >= flow->una && !(packet->flags & (LOST | RESENT))) update_round_trip(flow, now - packet->sent);
    if (packet->number > flow->newest) flow->newest = packet->number;
    if (number >= upto && number >= flow->una && !(packet->flags & SACKED)) {
        clear_flags(flow, packet);
        packet->flags = SACKED;
        flow->sacked++;
        delivered++;
    }
    for (; flow->una < upto; flow->una++) {
        Packet *old = &flow->packets[flow->una];
        delivered += !(old->flags & SACKED);
        clear_flags(flow, old);
        old->flags = 0;
    }
    if (advanced) flow->backoff = flow->probing = 0;
    int definite = flow->state != OPEN || flow->sacked >= DUPLICATES, lost = find_lost(flow, definite);
    if (flow->state != OPEN && flow->una >= flow->end) {
        if (flow->state == RECOVERY) flow->window = flow->threshold;
        flow->state = OPEN;
    }
    if (lost && !definite) {
        start_timer(net, flow, REORDER, now + 2 * tick);
        lost = advanced = 0; /* this timer has been set */
    }
    if (flow->state == OPEN && flow->lost > 0) begin_recovery(flow);
    if (flow->state == RECOVERY) reduce_window(flow, delivered, advanced, lost);
    else grow_window(flow, delivered, outstanding);
    if (flow->una == flow->next) flow->idle = now;
    if (advanced || lost) set_timer(net, flow, now);
    send_more(net, flow, now);
    check_buffered(net, flow, now);
}

static void expire(Switch *net, Flow *flow, int kind, double now)
{
    if (kind == REORDER) {
        if (find_lost(flow, 1) && flow->state == OPEN) begin_recovery(flow);
        flow->window = maximum(flow->window, (double)count_in_flight(flow) + 1);
        set_timer(net, flow, now);
        send_more(net, flow, now);
        return;
    }
    if (kind == PROBE) { /* new data, or the last packet again */
        flow->probing = 1;
        if (flow->next < flow->limit) {
            transmit(net, flow, flow->next++, now);
        } else {
            Packet *packet = &flow->packets[flow->next - 1];
            flow->resent += !(packet->flags & RESENT);
            packet->flags |= RESENT;
            transmit(net, flow, flow->next - 1, now);
        }
        set_timer(net, flow, now);
        return;
    }
    net->timeouts++;
    flow->threshold = flow->state == LOSS ? flow->threshold : maximum(floor(flow->window / 2), LEAST_THRESHOLD);
    flow->lost = flow->resent = 0;
    for (int64_t number = flow->una; number < flow->next; number++) {
        Packet *packet = &flow->packets[number];
        if (packet->flags & SACKED) continue;
        packet->flags = LOST;
        flow->lost++;
    }
    flow->state = LOSS;
    flow->window = 1;
    flow->end = flow->next;
    flow->backoff++;
    send_more(net, flow, now);
}

/* One repeat, from a common start; 0, or DEADLOCKED. */
static int run_repeat(Switch *net, double base)
{
    const Tcp *tcp = net->tcp;
    net->done = net->timeouts = net->drops = 0;
    memset(net->buffered, 0, (size_t)tcp->messages);
    memset(net->delivered, 0, (size_t)tcp->messages);
    memset(net->awaited, 0, (size_t)tcp->messages);
    for (int64_t rank = 0; rank < tcp->ranks; rank++) {
        net->finish[rank] = -1;
        net->pending[rank] = 0;
        net->sends.at[rank] = net->sends.first[rank];
        net->receives.at[rank] = net->receives.first[rank];
        schedule(net, base + tcp->skew * draw_uniform(net), (Action){START, rank, 0, 0});
    }
    while (net->done < tcp->ranks && net->heap.count > 0 && !net->failed) {
        Event event = net->heap.events[0];
        drop_first(&net->heap);
        Action actions = net->actions[event.number];
        net->unused[net->unused_count++] = event.number;
        Flow *flow = actions.kind == START ? NULL : &net->flows[actions.of];
        switch (actions.kind) {
        case ARRIVES: arrive(net, flow, actions.packet, event.time); break;
        case DELIVERED: deliver(net, flow, actions.packet, event.time); break;
        case ACKNOWLEDGED: acknowledge(net, flow, actions.packet, actions.upto, event.time); break;
        case TIMER:
            if (actions.upto == flow->timer) expire(net, flow, (int)actions.packet, event.time);
            break;
        case ACK_TIMER:
            if (flow->acknowledged < actions.upto) send_ack(net, flow, actions.packet, event.time);
            break;
        case GRANTED:
            write_packets(net, actions.packet, tcp->packets[actions.packet] - tcp->eager[actions.packet], 1, event.time);
            check_buffered(net, flow, event.time);
            break;
        case START: advance(net, actions.of, event.time); break;
        }
    }
    return net->done < tcp->ranks ? DEADLOCKED : DONE;
}

static int group_by_rank(Rows *rows, const Tcp *tcp, const int64_t *rank, const int64_t *step)
{
    rows->rows = calloc((size_t)tcp->messages + 1, sizeof *rows->rows);
    rows->first = calloc((size_t)tcp->ranks + 2, sizeof *rows->first);
    rows->at = calloc((size_t)tcp->ranks + 1, sizeof *rows->at);
    if (!rows->rows || !rows->first || !rows->at) return -1;
    for (int64_t row = 0; row < tcp->messages; row++) rows->first[rank[row] + 1]++;
    for (int64_t number = 0; number < tcp->ranks; number++) rows->first[number + 1] += rows->first[number];
    memcpy(rows->at, rows->first, (size_t)tcp->ranks * sizeof *rows->at);
    for (int64_t row = 0; row < tcp->messages; row++) { /* insertion sort: rows are nearly in the order of their steps */
        int64_t at = rows->at[rank[row]]++;
        for (; at > rows->first[rank[row]] && step[rows->rows[at - 1]] > step[row]; at--) rows->rows[at] = rows->rows[at - 1];
        rows->rows[at] = row;
    }
    return 0;
}

/* Connections are the pairs of ranks that send. */
static int connect_ranks(Switch *net)
{
    const Tcp *tcp = net->tcp;
    net->flows = calloc((size_t)tcp->messages + 1, sizeof *net->flows);
    if (!net->flows) return -1;
    for (int64_t row = 0; row < tcp->messages; row++) {
        int64_t connection = -1; /* an earlier message of the same pair has its connection */
        for (int64_t at = net->sends.first[tcp->src[row]]; at < net->sends.first[tcp->src[row] + 1] && connection < 0; at++)
            if (net->sends.rows[at] < row && tcp->dst[net->sends.rows[at]] == tcp->dst[row]) connection = net->flow_of[net->sends.rows[at]];
        if (connection < 0) {
            connection = net->flow_count++;
            net->flows[connection] = (Flow){.src = tcp->src[row], .dst = tcp->dst[row], .window = INITIAL_WINDOW, .threshold = 1e9};
        }
        net->flow_of[row] = connection;
        net->flows[connection].total += tcp->packets[row] * (tcp->warmup + tcp->repeats);
    }
    for (int64_t number = 0; number < net->flow_count; number++) {
        net->flows[number].packets = calloc((size_t)net->flows[number].total, sizeof(Packet));
        if (!net->flows[number].packets) return -1;
    }
    return 0;
}

static int repeat_all(Switch *net)
{
    const Tcp *tcp = net->tcp;
    double base = 0;
    for (int64_t number = 0; number < tcp->warmup + tcp->repeats; number++) {
        int code = run_repeat(net, base);
        if (net->failed) return -1;
        if (code != DONE) return code;
        double end = base;
        for (int64_t rank = 0; rank < tcp->ranks; rank++) end = maximum(end, net->finish[rank]);
        if (number >= tcp->warmup) {
            int64_t at = number - tcp->warmup;
            for (int64_t rank = 0; rank < tcp->ranks; rank++) tcp->finish[at * tcp->ranks + rank] = net->finish[rank] - base;
            tcp->timeouts[at] = net->timeouts;
            tcp->drops[at] = net->drops;
        }
        base = end + 4 * tcp->packet_latency; /* a barrier */
    }
    return DONE;
}

int commodel_tcp(const Tcp *tcp)
{
    size_t messages = (size_t)tcp->messages + 1, ranks = (size_t)tcp->ranks + 1;
    Switch net = {.tcp = tcp, .random = tcp->seed * UINT64_C(0x9E3779B97F4A7C15) + 1};
    net.flow_of = calloc(messages, sizeof(int64_t));
    net.end_of = calloc(messages, sizeof(int64_t));
    net.pending = calloc(ranks, sizeof(int64_t));
    net.buffered = calloc(messages, 1);
    net.delivered = calloc(messages, 1);
    net.awaited = calloc(messages, 1);
    net.out_free = calloc(ranks, sizeof(double));
    net.in_free = calloc(ranks, sizeof(double));
    net.finish = calloc(ranks, sizeof(double));
    int ready = net.flow_of && net.end_of && net.pending && net.buffered && net.delivered && net.awaited &&
                net.out_free && net.in_free && net.finish;
    ready = group_by_rank(&net.sends, tcp, tcp->src, tcp->step) == 0 && ready;
    ready = group_by_rank(&net.receives, tcp, tcp->dst, tcp->wait) == 0 && ready;
    int code = ready && connect_ranks(&net) == 0 ? repeat_all(&net) : -1;
    for (int64_t number = 0; number < net.flow_count; number++) free(net.flows[number].packets);
    void *all[] = {net.flow_of, net.end_of, net.pending, net.buffered, net.delivered, net.awaited, net.out_free, net.in_free,
                   net.finish, net.flows, net.heap.events, net.actions, net.unused, net.sends.rows, net.sends.first,
                   net.sends.at, net.receives.rows, net.receives.first, net.receives.at};
    for (size_t number = 0; number < sizeof all / sizeof *all; number++) free(all[number]);
    return code;
}
