/* tcp.c: a schedule whose messages TCP carries through the ports of one switch, packet by packet.
 *
 * A sender's port sends a packet every g_s; the port to a receiver forwards one every g_r and holds B_L packets. A packet
 * that finds it full is lost. What TCP then does is what Linux does, with congestion control by Reno:
 *
 *   - the window begins with 10 packets, doubles in slow start, then grows by one a round trip (RFC 5681, RFC 6928);
 *   - a packet is lost if three others are known to have arrived and one that was sent later is among them; of fewer, two
 *     ticks of the clock later (RACK, RFC 8985);
 *   - a loss halves the window, and packets are sent again in proportion to those that arrive (PRR, RFC 6937);
 *   - if nothing arrives, the last packet is sent again after two round trips and two ticks (tail loss probe, RFC 8985),
 *     unless it is the only one, or packets have been lost already;
 *   - every second packet that arrives in order is acknowledged, a single one 40 ms later;
 *   - else all is sent again a timeout later, with a window of one packet, and the next timeout is twice as long.
 *
 * Of a long message MPI sends a first part, and the rest when the receiver has granted it.
 *
 * A gather is repeated with the windows that the last one left. Ranks start a little apart, at random. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "events.h"

enum { OPEN, RECOVERY, LOSS };            /* states of a connection */
enum { SACKED = 1, LOST = 2, AGAIN = 4 }; /* flags of a packet; AGAIN: sent again, and in flight */
enum { ARRIVES, DELIVERED, ACKNOWLEDGED, TIMER, ANSWERS, GRANTED, STARTS }; /* events */
enum { RETRANSMIT, PROBE, REORDER };                                        /* timers */
enum { DONE, DEADLOCKED };                                                  /* of a repeat */
enum { INITIAL_WINDOW = 10, LEAST_THRESHOLD = 2, DUPLICATES = 3 };          /* packets */
static const double tick = 4e-3;       /* s: of Linux's timers at 250 Hz */
static const double ack_delay = 40e-3; /* s: of an acknowledgement of a single packet */
static const double written = 3.2;     /* windows that a sender may write ahead: tcp_sndbuf_expand of Linux */

/* Numbers of the machine, then of the schedule by message, in the order of their steps. */
typedef struct {
    int64_t ranks, messages, repeats, warm; /* repeats, after so many that only set the windows */
    uint64_t seed;
    double gap_out, gap_in, way, back; /* s: g_s and g_r of a full packet, the ways of a packet and of its acknowledgement */
    double held, timeout, skew, jitter; /* packets; s: least timeout, how far apart ranks start, and of a packet's way */
    const int64_t *src, *dst, *step, *wait, *packets, *eager; /* eager: packets sent before the receiver grants the rest */
    const double *last_out, *last_in; /* s: g_s and g_r of the last packet */
    double *finish;                   /* by repeat and rank */
    int64_t *timeouts, *drops;        /* by repeat */
} Tcp;

typedef struct {
    double sent;    /* when it was sent last */
    int64_t number; /* of that, in the order of all packets */
    int64_t message;
    uint8_t flags, last, asks, arrived; /* last: of its message; asks: the last before a grant */
} Packet;

typedef struct {
    int64_t src, dst;
    Packet *packets;
    int64_t next, una, limit, total, received; /* sent, acknowledged, written, in all, received in order */
    int64_t sacked, lost, again, newest;       /* packets; the latest that has arrived, by its number */
    int state, backoff, probing;
    double window, threshold, trip, spread; /* packets; s: the smoothed round trip and its deviation */
    int64_t end;                            /* of a recovery */
    double flight, delivered, out;          /* of PRR: the window before the loss; packets since */
    int64_t timer;                          /* its number: an older one is void */
    double idle;                            /* since */
    int64_t answered, ahead;                /* what the receiver has acknowledged; packets out of order */
} Flow;

/* An event. `upto`: what is acknowledged, or the number of a timer. */
typedef struct {
    int64_t kind, of, packet, upto;
} What;

/* Messages of each rank, in the order of their steps: those of rank r are rows[first[r]] to rows[first[r + 1]]. */
typedef struct {
    int64_t *rows, *first, *at;
} Rows;

typedef struct {
    const Tcp *tcp;
    Flow *flows;
    int64_t flow_count;
    int64_t *flow_of, *end_of; /* by message: its connection, and the packet after its last one there */
    Rows sends, takes;
    int64_t *pending; /* by rank: messages that its step waits for */
    uint8_t *buffered, *delivered, *awaited; /* by message */
    double *out_free, *in_free, *finish;     /* by rank */
    Heap heap;
    What *what;
    int64_t whats, *unused, unused_count;
    int64_t turn, number, done, timeouts, drops;
    uint64_t random;
    int failed;
} Switch;

static double chance(Switch *net)
{
    net->random ^= net->random >> 12;
    net->random ^= net->random << 25;
    net->random ^= net->random >> 27;
    return (double)((net->random * UINT64_C(2685821657736338717)) >> 11) * 0x1p-53;
}

static void later(Switch *net, double time, What what)
{
    if (net->unused_count == 0) {
        int64_t room = 2 * net->whats + 256;
        What *more = realloc(net->what, (size_t)room * sizeof *more);
        if (more) net->what = more;
        int64_t *unused = more ? realloc(net->unused, (size_t)room * sizeof *unused) : NULL;
        if (unused == NULL) {
            net->failed = 1;
            return;
        }
        net->unused = unused;
        while (net->whats < room) net->unused[net->unused_count++] = net->whats++;
    }
    int64_t at = net->unused[--net->unused_count];
    net->what[at] = what;
    if (push(&net->heap, (Event){time, (uint32_t)++net->turn, (uint32_t)at}) != 0) net->failed = 1;
}

static double least(double one, double other) { return one < other ? one : other; }
static double most(double one, double other) { return one > other ? one : other; }

static double timeout_of(const Switch *net, const Flow *flow)
{
    double wait = flow->trip + most(net->tcp->timeout, 4 * flow->spread);
    return ldexp(wait, flow->backoff < 9 ? flow->backoff : 9);
}

static void start_timer(Switch *net, Flow *flow, int kind, double at)
{
    later(net, (floor(at / tick) + 1) * tick, (What){TIMER, flow - net->flows, kind, ++flow->timer});
}

/* A timeout, or sooner a probe for a lost tail. */
static void set_timer(Switch *net, Flow *flow, double now)
{
    flow->timer++;
    if (flow->una == flow->next) return;
    double wait = timeout_of(net, flow);
    int64_t outstanding = flow->next - flow->una;
    int probe = flow->state == OPEN && flow->sacked == 0 && !flow->probing && flow->trip > 0;
    double soon = 2 * flow->trip + (outstanding == 1 ? net->tcp->timeout : 2 * tick);
    flow->backoff = flow->state == LOSS ? flow->backoff : 0;
    probe = probe && soon < wait;
    start_timer(net, flow, probe ? PROBE : RETRANSMIT, now + (probe ? soon : wait));
}

static void transmit(Switch *net, Flow *flow, int64_t number, double now)
{
    const Tcp *tcp = net->tcp;
    Packet *packet = &flow->packets[number];
    double start = most(now, net->out_free[flow->src]);
    net->out_free[flow->src] = start + (packet->last ? tcp->last_out[packet->message] : tcp->gap_out);
    packet->sent = now;
    packet->number = ++net->number;
    flow->out++;
    later(net, start + tcp->way + tcp->jitter * chance(net), (What){ARRIVES, flow - net->flows, number, 0});
}

/* Packets in flight. */
static int64_t pipe_of(const Flow *flow) { return flow->next - flow->una - flow->sacked - flow->lost + flow->again; }

static void send_more(Switch *net, Flow *flow, double now)
{
    int sent = 0;
    int64_t lost = flow->una;
    while (pipe_of(flow) < (int64_t)flow->window) {
        if (flow->lost > flow->again) {
            while (lost < flow->next && (flow->packets[lost].flags & (LOST | AGAIN | SACKED)) != LOST) lost++;
        } else {
            lost = flow->next;
        }
        if (lost < flow->next) {
            flow->packets[lost].flags |= AGAIN;
            flow->again++;
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
    double ahead = written * most(flow->window, INITIAL_WINDOW);
    for (int64_t at = sends->first[flow->src]; at < sends->at[flow->src]; at++) {
        int64_t row = sends->rows[at];
        if (net->buffered[row] || &net->flows[net->flow_of[row]] != flow) continue;
        if ((double)(net->end_of[row] - flow->una) > ahead) return;
        net->buffered[row] = 1;
        if (--net->pending[flow->src] == 0) advance(net, tcp->src[row], now);
    }
}

/* Gives packets of a message to TCP: the first part, or the rest. */
static void write_packets(Switch *net, int64_t row, int64_t count, int last, double now)
{
    Flow *flow = &net->flows[net->flow_of[row]];
    if (flow->una == flow->next && now - flow->idle > timeout_of(net, flow) && flow->window > INITIAL_WINDOW)
        flow->window = INITIAL_WINDOW; /* after idle */
    for (int64_t packet = 0; packet < count; packet++) {
        int end = packet == count - 1;
        flow->packets[flow->limit + packet] = (Packet){.message = row, .last = end && last, .asks = end && !last};
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

/* Posts and waits, step by step, until the rank has to wait. */
static void advance(Switch *net, int64_t rank, double now)
{
    const Tcp *tcp = net->tcp;
    Rows *sends = &net->sends, *takes = &net->takes;
    while (net->pending[rank] == 0) {
        int64_t send = sends->at[rank], take = takes->at[rank], step = INT64_MAX;
        if (send < sends->first[rank + 1]) step = tcp->step[sends->rows[send]];
        if (take < takes->first[rank + 1] && tcp->wait[takes->rows[take]] < step) step = tcp->wait[takes->rows[take]];
        if (step == INT64_MAX) {
            if (net->finish[rank] < 0) net->done++;
            net->finish[rank] = now;
            return;
        }
        net->pending[rank] = 1; /* not done before all are posted */
        for (; takes->at[rank] < takes->first[rank + 1] && tcp->wait[takes->rows[takes->at[rank]]] == step; takes->at[rank]++) {
            int64_t row = takes->rows[takes->at[rank]];
            net->awaited[row] = 1;
            net->pending[rank] += !net->delivered[row];
        }
        for (; sends->at[rank] < sends->first[rank + 1] && tcp->step[sends->rows[sends->at[rank]]] == step; sends->at[rank]++) {
            int64_t row = sends->rows[sends->at[rank]];
            write_message(net, row, now);
            Flow *flow = &net->flows[net->flow_of[row]];
            if ((double)(net->end_of[row] - flow->una) <= written * most(flow->window, INITIAL_WINDOW)) net->buffered[row] = 1;
            net->pending[rank] += !net->buffered[row];
        }
        net->pending[rank]--;
    }
}

static void arrive(Switch *net, Flow *flow, int64_t number, double now)
{
    const Tcp *tcp = net->tcp;
    const Packet *packet = &flow->packets[number];
    double wait = most(0, net->in_free[flow->dst] - now);
    if (wait > tcp->held * tcp->gap_in) {
        net->drops++;
        return;
    }
    net->in_free[flow->dst] = now + wait + (packet->last ? tcp->last_in[packet->message] : tcp->gap_in);
    later(net, now + wait, (What){DELIVERED, flow - net->flows, number, 0});
}

static void answer(Switch *net, Flow *flow, int64_t number, double now)
{
    flow->answered = flow->received;
    later(net, now + net->tcp->back, (What){ACKNOWLEDGED, flow - net->flows, number, flow->received});
}

static void deliver(Switch *net, Flow *flow, int64_t number, double now)
{
    const Tcp *tcp = net->tcp;
    int64_t before = flow->received;
    int new = !flow->packets[number].arrived, in_order = number == before && flow->ahead == 0;
    flow->packets[number].arrived = 1;
    flow->ahead += new;
    while (flow->received < flow->limit && flow->packets[flow->received].arrived) {
        const Packet *packet = &flow->packets[flow->received++];
        flow->ahead--;
        if (packet->asks) later(net, now + tcp->back, (What){GRANTED, flow - net->flows, packet->message, 0});
        if (!packet->last) continue;
        net->delivered[packet->message] = 1;
        if (net->awaited[packet->message] && --net->pending[flow->dst] == 0) advance(net, flow->dst, now);
    }
    if (in_order && flow->received - flow->answered < 2)
        later(net, now + ack_delay, (What){ANSWERS, flow - net->flows, number, flow->received});
    else
        answer(net, flow, number, now);
}

static void forget(Flow *flow, Packet *packet)
{
    flow->sacked -= (packet->flags & SACKED) != 0;
    flow->lost -= (packet->flags & LOST) != 0;
    flow->again -= (packet->flags & AGAIN) != 0;
}

static void begin_recovery(Flow *flow)
{
    flow->state = RECOVERY;
    flow->flight = flow->window;
    flow->threshold = most(floor(flow->window / 2), LEAST_THRESHOLD);
    flow->end = flow->next;
    flow->delivered = flow->out = 0;
}

/* The window in a recovery, after so many packets were found to have arrived (PRR). */
static void reduce_window(Flow *flow, int64_t delivered, int advanced, int lost)
{
    double more, pipe = (double)pipe_of(flow);
    flow->delivered += (double)delivered;
    if (pipe > flow->threshold) more = ceil(flow->delivered * flow->threshold / flow->flight) - flow->out;
    else {
        more = most(flow->delivered - flow->out, (double)delivered) + (advanced && !lost);
        more = least(flow->threshold - pipe, more);
    }
    flow->window = pipe + most(more, flow->out > 0 ? 0 : 1);
}

static void grow_window(Flow *flow, int64_t delivered, int64_t outstanding)
{
    if (flow->window < flow->threshold) {
        if (flow->window < 2 * (double)outstanding) flow->window = least(flow->window + (double)delivered, most(flow->threshold, flow->window));
    } else if ((double)outstanding >= floor(flow->window)) {
        flow->window += (double)delivered / flow->window;
    }
}

/* Marks packets that are lost, or only counts what would be. */
static int find_lost(Flow *flow, int mark)
{
    int found = 0;
    for (int64_t number = flow->una; number < flow->next; number++) {
        Packet *packet = &flow->packets[number];
        if (packet->flags & SACKED || packet->number >= flow->newest || (packet->flags & (LOST | AGAIN)) == LOST) continue;
        found = 1;
        if (!mark) break;
        if (packet->flags & AGAIN) flow->again--;
        if (!(packet->flags & LOST)) flow->lost++;
        packet->flags = LOST;
    }
    return found;
}

static void measure_trip(Flow *flow, double trip)
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
    if (number >= flow->una && !(packet->flags & (LOST | AGAIN))) measure_trip(flow, now - packet->sent);
    if (packet->number > flow->newest) flow->newest = packet->number;
    if (number >= upto && number >= flow->una && !(packet->flags & SACKED)) {
        forget(flow, packet);
        packet->flags = SACKED;
        flow->sacked++;
        delivered++;
    }
    for (; flow->una < upto; flow->una++) {
        Packet *old = &flow->packets[flow->una];
        delivered += !(old->flags & SACKED);
        forget(flow, old);
        old->flags = 0;
    }
    if (advanced) flow->backoff = flow->probing = 0;
    int sure = flow->state != OPEN || flow->sacked >= DUPLICATES, lost = find_lost(flow, sure);
    if (flow->state != OPEN && flow->una >= flow->end) {
        if (flow->state == RECOVERY) flow->window = flow->threshold;
        flow->state = OPEN;
    }
    if (lost && !sure) {
        start_timer(net, flow, REORDER, now + 2 * tick);
        lost = advanced = 0; /* which timer runs is settled */
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
        flow->window = most(flow->window, (double)pipe_of(flow) + 1);
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
            flow->again += !(packet->flags & AGAIN);
            packet->flags |= AGAIN;
            transmit(net, flow, flow->next - 1, now);
        }
        set_timer(net, flow, now);
        return;
    }
    net->timeouts++;
    flow->threshold = flow->state == LOSS ? flow->threshold : most(floor(flow->window / 2), LEAST_THRESHOLD);
    flow->lost = flow->again = 0;
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
static int play(Switch *net, double base)
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
        net->takes.at[rank] = net->takes.first[rank];
        later(net, base + tcp->skew * chance(net), (What){STARTS, rank, 0, 0});
    }
    while (net->done < tcp->ranks && net->heap.count > 0 && !net->failed) {
        Event event = net->heap.events[0];
        drop_first(&net->heap);
        What what = net->what[event.number];
        net->unused[net->unused_count++] = event.number;
        Flow *flow = what.kind == STARTS ? NULL : &net->flows[what.of];
        switch (what.kind) {
        case ARRIVES: arrive(net, flow, what.packet, event.time); break;
        case DELIVERED: deliver(net, flow, what.packet, event.time); break;
        case ACKNOWLEDGED: acknowledge(net, flow, what.packet, what.upto, event.time); break;
        case TIMER:
            if (what.upto == flow->timer) expire(net, flow, (int)what.packet, event.time);
            break;
        case ANSWERS:
            if (flow->answered < what.upto) answer(net, flow, what.packet, event.time);
            break;
        case GRANTED:
            write_packets(net, what.packet, tcp->packets[what.packet] - tcp->eager[what.packet], 1, event.time);
            check_buffered(net, flow, event.time);
            break;
        case STARTS: advance(net, what.of, event.time); break;
        }
    }
    return net->done < tcp->ranks ? DEADLOCKED : DONE;
}

static int group(Rows *rows, const Tcp *tcp, const int64_t *rank, const int64_t *step)
{
    rows->rows = calloc((size_t)tcp->messages + 1, sizeof *rows->rows);
    rows->first = calloc((size_t)tcp->ranks + 2, sizeof *rows->first);
    rows->at = calloc((size_t)tcp->ranks + 1, sizeof *rows->at);
    if (!rows->rows || !rows->first || !rows->at) return -1;
    for (int64_t row = 0; row < tcp->messages; row++) rows->first[rank[row] + 1]++;
    for (int64_t number = 0; number < tcp->ranks; number++) rows->first[number + 1] += rows->first[number];
    memcpy(rows->at, rows->first, (size_t)tcp->ranks * sizeof *rows->at);
    for (int64_t row = 0; row < tcp->messages; row++) { /* insertion: rows come nearly in the order of their steps */
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
        int64_t found = -1; /* the last message of the same pair has its connection */
        for (int64_t at = net->sends.first[tcp->src[row]]; at < net->sends.first[tcp->src[row] + 1] && found < 0; at++)
            if (net->sends.rows[at] < row && tcp->dst[net->sends.rows[at]] == tcp->dst[row]) found = net->flow_of[net->sends.rows[at]];
        if (found < 0) {
            found = net->flow_count++;
            net->flows[found] = (Flow){.src = tcp->src[row], .dst = tcp->dst[row], .window = INITIAL_WINDOW, .threshold = 1e9};
        }
        net->flow_of[row] = found;
        net->flows[found].total += tcp->packets[row] * (tcp->warm + tcp->repeats);
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
    for (int64_t number = 0; number < tcp->warm + tcp->repeats; number++) {
        int code = play(net, base);
        if (net->failed) return -1;
        if (code != DONE) return code;
        double end = base;
        for (int64_t rank = 0; rank < tcp->ranks; rank++) end = most(end, net->finish[rank]);
        if (number >= tcp->warm) {
            int64_t at = number - tcp->warm;
            for (int64_t rank = 0; rank < tcp->ranks; rank++) tcp->finish[at * tcp->ranks + rank] = net->finish[rank] - base;
            tcp->timeouts[at] = net->timeouts;
            tcp->drops[at] = net->drops;
        }
        base = end + 4 * tcp->way; /* a barrier */
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
    ready = group(&net.sends, tcp, tcp->src, tcp->step) == 0 && ready;
    ready = group(&net.takes, tcp, tcp->dst, tcp->wait) == 0 && ready;
    int code = ready && connect_ranks(&net) == 0 ? repeat_all(&net) : -1;
    for (int64_t number = 0; number < net.flow_count; number++) free(net.flows[number].packets);
    void *all[] = {net.flow_of, net.end_of, net.pending, net.buffered, net.delivered, net.awaited, net.out_free, net.in_free,
                   net.finish, net.flows, net.heap.events, net.what, net.unused, net.sends.rows, net.sends.first,
                   net.sends.at, net.takes.rows, net.takes.first, net.takes.at};
    for (size_t number = 0; number < sizeof all / sizeof *all; number++) free(all[number]);
    return code;
}
