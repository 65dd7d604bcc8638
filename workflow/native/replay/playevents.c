/* Simulates operations event by event like LogGOPSim, by the conventions of models/evaluation/simulator.py. Times are
 * integers. */

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
    const Operations *of;
    const Times *times;
    int64_t *processor, *out, *into; /* when each rank's processor and ports are free */
    int64_t *waits;                  /* pending dependencies of each operation */
    int64_t *first, *last, *next;    /* unmatched messages or receives (never both) of each match; -1: none */
    int64_t *freed;                  /* operations without pending dependencies */
    int64_t count, left;             /* of freed; number of unfinished operations */
    uint32_t created;
    Heap queue;
} Simulation;

static int64_t larger(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

static void release_dependents(Simulation *own, const Lists *lists, int64_t number)
{
    for (int64_t at = lists->first[number]; at < lists->first[number + 1]; at++)
        if (--own->waits[lists->after[at]] == 0)
            own->freed[own->count++] = lists->after[at];
}

static int create(Simulation *own, int64_t time, int64_t number, int arrives)
{
    return push(&own->queue, (Event){time, own->created++, (uint32_t)(2 * number + arrives)});
}

/* Freed operations of a rank begin by kind, equal kinds in their order. */
static int begin(Simulation *own, int64_t rank)
{
    for (int kind = SEND; kind <= CALC; kind++)
        for (int64_t at = 0; at < own->count; at++) {
            int64_t number = own->freed[at], free = own->processor[rank];
            if (own->of->rank[number] == rank && own->of->kind[number] == kind &&
                create(own, kind == SEND ? larger(free, own->out[rank]) : free, number, 0))
                return -1;
        }
    return 0;
}

static int begin_both(Simulation *own, int64_t rank, int64_t other)
{
    int64_t first = rank < other ? rank : other, second = rank < other ? other : rank;
    int failed = own->count && (begin(own, first) || (first != second && begin(own, second)));
    own->count = 0;
    return failed ? -1 : 0;
}

/* Returns the operation that has waited longest for a match; if there is none, -1, and this one waits. */
static int64_t met(Simulation *own, int64_t number)
{
    int64_t match = own->of->match[number], first = own->first[match];
    if (first >= 0 && own->of->kind[first] != own->of->kind[number]) {
        own->first[match] = own->next[first];
        return first;
    }
    own->next[number] = -1;
    if (first < 0)
        own->first[match] = number;
    else
        own->next[own->last[match]] = number;
    own->last[match] = number;
    return -1;
}

static void finish(Simulation *own, int64_t sent, int64_t received, int64_t time)
{
    int64_t sender = own->of->rank[sent];
    if (own->times->body[own->of->row[sent]] >= own->times->S) {
        own->processor[sender] = larger(own->processor[sender], time);
        own->out[sender] = larger(own->out[sender], time);
        release_dependents(own, &own->of->done, sent);
    }
    release_dependents(own, &own->of->done, received);
    own->left--;
}

static int process_event(Simulation *own, const Event *event)
{
    const Operations *of = own->of;
    const Times *times = own->times;
    int64_t number = event->number / 2, rank = of->rank[number], other = of->peer[number], time = event->time, free = time;
    int arrives = event->number & 1, kind = (int)of->kind[number];
    if (arrives)
        free = larger(own->processor[other], own->into[other]);
    else if (kind != RECEIVE)
        free = kind == SEND ? larger(own->processor[rank], own->out[rank]) : own->processor[rank];
    if (free > time) {
        replace_first(&own->queue, (Event){free, event->turn, event->number});
        return 0;
    }
    drop_first(&own->queue);
    int64_t body = kind == CALC ? 0 : times->body[of->row[number]];
    if (arrives) {
        own->processor[other] = time + times->o + body * larger(times->O, times->G);
        own->into[other] = time + times->g + body * times->G;
        int64_t received = met(own, number);
        if (received >= 0)
            finish(own, number, received, time);
        return begin_both(own, rank, other);
    }
    if (kind == RECEIVE) {
        release_dependents(own, &of->started, number);
        int64_t sent = met(own, number);
        if (sent >= 0)
            finish(own, sent, number, time);
        return begin_both(own, rank, other);
    }
    own->left--;
    release_dependents(own, &of->started, number);
    if (kind == CALC) {
        own->processor[rank] = time + (of->row[number] < 0 ? 0 : times->work[of->row[number]]);
    } else {
        own->processor[rank] = time + times->o + body * times->O;
        own->out[rank] = time + times->g + body * times->G;
        if (create(own, time + times->o + times->L, number, 1))
            return -1;
    }
    if (kind == CALC || body < times->S)
        release_dependents(own, &of->done, number);
    return begin_both(own, rank, rank);
}

/* Writes when each rank's processor becomes free for the last time. Returns 0; 1: deadlock; -1: no memory. */
int commodel_by_events(const Operations *of, const Times *times, double *done)
{
    size_t ranks = (size_t)of->ranks, count = (size_t)of->count, matches = (size_t)of->matches;
    int64_t *clocks = calloc(3 * ranks + 1, sizeof *clocks), *columns = malloc((3 * count + 2 * matches + 1) * sizeof *columns);
    Simulation own = {.of = of, .times = times, .processor = clocks, .left = of->count};
    int failed = clocks == NULL || columns == NULL;
    if (!failed) {
        own.out = clocks + ranks, own.into = own.out + ranks;
        own.waits = columns, own.next = own.waits + count, own.freed = own.next + count;
        own.first = own.freed + count, own.last = own.first + matches;
        for (size_t number = 0; number < count; number++)
            own.waits[number] = of->waits[number];
        for (size_t match = 0; match < matches; match++)
            own.first[match] = -1;
        for (size_t number = 0; number < count && !failed; number++) {
            if (of->waits[number] == 0)
                own.freed[own.count++] = (int64_t)number;
            if (number + 1 == count || of->rank[number + 1] != of->rank[number])
                failed = begin_both(&own, of->rank[number], of->rank[number]);
        }
        while (!failed && own.queue.count > 0) {
            Event event = own.queue.events[0];
            failed = process_event(&own, &event);
        }
        for (size_t rank = 0; rank < ranks; rank++)
            done[rank] = (double)own.processor[rank];
    }
    free(clocks), free(columns), free(own.queue.events);
    return failed ? -1 : own.left > 0;
}
