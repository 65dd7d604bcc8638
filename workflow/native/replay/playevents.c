/* playevents.c: simulates operations event by event like LogGOPSim, with the conventions of
 * models/evaluation/simulator.py. Times are integers. */

#define EVENT_TIME int64_t
#include "events.h"

enum { SEND = 1, RECEIVE, CALC };

/* The operations that depend on number i: those of `after` from first[i] to first[i + 1]. */
typedef struct {
    const int64_t *after, *first;
} Lists;

typedef struct {
    int64_t ranks, count, matches;
    const int64_t *rank, *kind, *row, *peer, *match, *waits;
    Lists started, done;
} Operations;

typedef struct {
    int64_t L, o, g, G, O, S;
    const int64_t *body, *work; /* of messages, and of calculations */
} Times;

typedef struct {
    const Operations *operations;
    const Times *times;
    int64_t *processor, *out, *in; /* when each rank's processor and ports are free */
    int64_t *waits;                  /* pending dependencies of each operation */
    int64_t *first, *last, *next;    /* unmatched messages or receives (never both) of each match; -1: none */
    int64_t *ready;                  /* operations without pending dependencies */
    int64_t count, unfinished;       /* number of ready and of unfinished operations */
    uint32_t created;
    Heap queue;
} Simulation;

static int64_t maximum(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

static void release_dependents(Simulation *sim, const Lists *lists, int64_t number)
{
    for (int64_t at = lists->first[number]; at < lists->first[number + 1]; at++)
        if (--sim->waits[lists->after[at]] == 0)
            sim->ready[sim->count++] = lists->after[at];
}

static int schedule_event(Simulation *sim, int64_t time, int64_t number, int arrives)
{
    return push(&sim->queue, (Event){time, sim->created++, (uint32_t)(2 * number + arrives)});
}

/* Begins the ready operations of a rank by kind, and within a kind in their order. */
static int begin(Simulation *sim, int64_t rank)
{
    for (int kind = SEND; kind <= CALC; kind++)
        for (int64_t at = 0; at < sim->count; at++) {
            int64_t number = sim->ready[at], free = sim->processor[rank];
            if (sim->operations->rank[number] == rank && sim->operations->kind[number] == kind &&
                schedule_event(sim, kind == SEND ? maximum(free, sim->out[rank]) : free, number, 0))
                return -1;
        }
    return 0;
}

static int begin_both(Simulation *sim, int64_t rank, int64_t other)
{
    int64_t first = rank < other ? rank : other, second = rank < other ? other : rank;
    int failed = sim->count && (begin(sim, first) || (first != second && begin(sim, second)));
    sim->count = 0;
    return failed ? -1 : 0;
}

/* Returns the operation that has waited longest for this match; -1 if there is none, and this operation waits. */
static int64_t find_match(Simulation *sim, int64_t number)
{
    int64_t match = sim->operations->match[number], first = sim->first[match];
    if (first >= 0 && sim->operations->kind[first] != sim->operations->kind[number]) {
        sim->first[match] = sim->next[first];
        return first;
    }
    sim->next[number] = -1;
    if (first < 0)
        sim->first[match] = number;
    else
        sim->next[sim->last[match]] = number;
    sim->last[match] = number;
    return -1;
}

static void finish(Simulation *sim, int64_t sent, int64_t received, int64_t time)
{
    int64_t sender = sim->operations->rank[sent];
    if (sim->times->body[sim->operations->row[sent]] >= sim->times->S) {
        sim->processor[sender] = maximum(sim->processor[sender], time);
        sim->out[sender] = maximum(sim->out[sender], time);
        release_dependents(sim, &sim->operations->done, sent);
    }
    release_dependents(sim, &sim->operations->done, received);
    sim->unfinished--;
}

static int process_event(Simulation *sim, const Event *event)
{
    const Operations *operations = sim->operations;
    const Times *times = sim->times;
    int64_t number = event->number / 2, rank = operations->rank[number], other = operations->peer[number], time = event->time, free = time;
    int arrives = event->number & 1, kind = (int)operations->kind[number];
    if (arrives)
        free = maximum(sim->processor[other], sim->in[other]);
    else if (kind != RECEIVE)
        free = kind == SEND ? maximum(sim->processor[rank], sim->out[rank]) : sim->processor[rank];
    if (free > time) {
        replace_first(&sim->queue, (Event){free, event->order, event->number});
        return 0;
    }
    drop_first(&sim->queue);
    int64_t body = kind == CALC ? 0 : times->body[operations->row[number]];
    if (arrives) {
        sim->processor[other] = time + times->o + body * maximum(times->O, times->G);
        sim->in[other] = time + times->g + body * times->G;
        int64_t received = find_match(sim, number);
        if (received >= 0)
            finish(sim, number, received, time);
        return begin_both(sim, rank, other);
    }
    if (kind == RECEIVE) {
        release_dependents(sim, &operations->started, number);
        int64_t sent = find_match(sim, number);
        if (sent >= 0)
            finish(sim, sent, number, time);
        return begin_both(sim, rank, other);
    }
    sim->unfinished--;
    release_dependents(sim, &operations->started, number);
    if (kind == CALC) {
        sim->processor[rank] = time + (operations->row[number] < 0 ? 0 : times->work[operations->row[number]]);
    } else {
        sim->processor[rank] = time + times->o + body * times->O;
        sim->out[rank] = time + times->g + body * times->G;
        if (schedule_event(sim, time + times->o + times->L, number, 1))
            return -1;
    }
    if (kind == CALC || body < times->S)
        release_dependents(sim, &operations->done, number);
    return begin_both(sim, rank, rank);
}

/* Writes the time at which each rank's processor becomes free for the last time. Returns 0; 1: deadlock; -1: no memory. */
int commodel_by_events(const Operations *operations, const Times *times, double *done)
{
    size_t ranks = (size_t)operations->ranks, count = (size_t)operations->count, matches = (size_t)operations->matches;
    int64_t *clocks = calloc(3 * ranks + 1, sizeof *clocks), *columns = malloc((3 * count + 2 * matches + 1) * sizeof *columns);
    Simulation sim = {.operations = operations, .times = times, .processor = clocks, .unfinished = operations->count};
    int failed = clocks == NULL || columns == NULL;
    if (!failed) {
        sim.out = clocks + ranks, sim.in = sim.out + ranks;
        sim.waits = columns, sim.next = sim.waits + count, sim.ready = sim.next + count;
        sim.first = sim.ready + count, sim.last = sim.first + matches;
        for (size_t number = 0; number < count; number++)
            sim.waits[number] = operations->waits[number];
        for (size_t match = 0; match < matches; match++)
            sim.first[match] = -1;
        for (size_t number = 0; number < count && !failed; number++) {
            if (operations->waits[number] == 0)
                sim.ready[sim.count++] = (int64_t)number;
            if (number + 1 == count || operations->rank[number + 1] != operations->rank[number])
                failed = begin_both(&sim, operations->rank[number], operations->rank[number]);
        }
        while (!failed && sim.queue.count > 0) {
            Event event = sim.queue.events[0];
            failed = process_event(&sim, &event);
        }
        for (size_t rank = 0; rank < ranks; rank++)
            done[rank] = (double)sim.processor[rank];
    }
    free(clocks), free(columns), free(sim.queue.events);
    return failed ? -1 : sim.unfinished > 0;
}
