/* Lines of a network, each of which serves the messages on it in equal shares. `served` is what a message has had that
 * was on the line from its beginning; one that joins is through when `served` has grown by its seconds (`until`).
 * Where something comes back for each message (`back` of its share), lines that lead opposite ways hold each other up.
 * In a header for the same reason as events.h. */

#ifndef COMMODEL_LINES_H
#define COMMODEL_LINES_H

#include <stdint.h>
#include <string.h>

#include "events.h"

#define ROUNDING 1e-12 /* as in Python */

typedef struct {
    double until;
    int64_t message;
} User;

typedef struct {
    double served, since, due; /* due: when its next message is through */
    uint32_t turn;             /* of those due at one time, which is first */
    int64_t count, place;      /* its users; where it is among those due */
    int64_t opposite;          /* the line that leads the other way; -1: none, or nothing comes back */
    User *queue, *heap;        /* users that joined in the order in which they leave, and those that did not */
    int64_t first, last, room; /* of the queue */
    int64_t others, others_room;
} Line;

typedef struct {
    Line *lines;
    Heap due; /* lines with somebody on them, each once, by when their next message is through: at that time or later */
    double back;
} Network;

static inline void put(Network *network, int64_t at, Event event)
{
    network->due.events[at] = event;
    network->lines[event.number].place = at;
}

/* Puts a line where it belongs, from where there is room for it. */
static inline void settle(Network *network, int64_t at, Event event)
{
    Event *events = network->due.events;
    for (; at > 0 && before(&event, &events[(at - 1) / 2]); at = (at - 1) / 2)
        put(network, at, events[(at - 1) / 2]);
    for (int64_t child; (child = 2 * at + 1) < network->due.count; at = child) {
        child += child + 1 < network->due.count ? before(&events[child + 1], &events[child]) : 0;
        if (!before(&events[child], &event))
            break;
        put(network, at, events[child]);
    }
    put(network, at, event);
}

static inline int sooner(const User *one, const User *two)
{
    return one->until < two->until || (one->until == two->until && one->message < two->message);
}

/* 0, or -1: no memory. */
static inline int widen(User **users, int64_t *room)
{
    int64_t more = 2 * *room + 8;
    User *wider = realloc(*users, (size_t)more * sizeof *wider);
    if (wider == NULL)
        return -1;
    *users = wider;
    *room = more;
    return 0;
}

/* Messages of one size leave in the order in which they have joined, however many there are. */
static inline int enter(Line *line, User user)
{
    line->count++;
    if (line->first == line->last)
        line->first = line->last = 0;
    if (line->last == 0 || !sooner(&user, &line->queue[line->last - 1])) {
        if (line->last == line->room && line->first > line->room / 2) {
            memmove(line->queue, line->queue + line->first, (size_t)(line->last - line->first) * sizeof user);
            line->last -= line->first;
            line->first = 0;
        }
        if (line->last == line->room && widen(&line->queue, &line->room))
            return -1;
        line->queue[line->last++] = user;
        return 0;
    }
    if (line->others == line->others_room && widen(&line->heap, &line->others_room))
        return -1;
    User *heap = line->heap;
    int64_t at = line->others++;
    for (; at > 0 && sooner(&user, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = user;
    return 0;
}

/* The one that leaves next. */
static inline const User *foremost(const Line *line)
{
    if (line->others == 0)
        return &line->queue[line->first];
    return line->first == line->last || sooner(line->heap, &line->queue[line->first]) ? line->heap
                                                                                       : &line->queue[line->first];
}

static inline int64_t leave(Line *line)
{
    const User *next = foremost(line);
    int64_t message = next->message;
    line->count--;
    if (next != line->heap || line->others == 0) {
        line->first++;
        return message;
    }
    User *heap = line->heap, last = heap[--line->others];
    int64_t at = 0;
    for (int64_t child; (child = 2 * at + 1) < line->others; at = child) {
        if (child + 1 < line->others && sooner(&heap[child + 1], &heap[child]))
            child++;
        if (!sooner(&heap[child], &last))
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return message;
}

/* Among how many each of its users has its share. */
static inline double load(const Network *network, const Line *line)
{
    int64_t own = line->count, other = line->opposite < 0 ? 0 : network->lines[line->opposite].count;
    if (other == 0)
        return (double)own;
    return own > other ? (double)own + network->back * (double)other : (double)other + network->back * (double)own;
}

static inline double served(const Network *network, const Line *line, double time)
{
    return line->served + (time - line->since) / load(network, line);
}

static inline void await_next(Network *network, Line *line, double time, int64_t turn)
{
    line->since = time;
    line->due = time + (foremost(line)->until - line->served) * load(network, line);
    line->turn = turn;
}

/* The one that leads the other way, if anybody is on it, with what it has served until now. A line that stands for two
 * that do the same is its own. */
static inline Line *opposite(Network *network, const Line *line, double time)
{
    Line *other = line->opposite < 0 ? NULL : &network->lines[line->opposite];
    if (other == NULL || other == line || other->count == 0)
        return NULL;
    other->served = served(network, other, time);
    return other;
}

static inline void renew(Network *network, Line *line, double time, int64_t turn)
{
    await_next(network, line, time, turn);
    if (line->due < network->due.events[line->place].time)
        settle(network, line->place, (Event){line->due, turn, line - network->lines});
}

/* Whether the first of those due is so at the time by which it is first. If not it is put where it belongs: mostly one
 * that joins puts off who is next, and lines are not put in order before it matters. */
static inline int in_order(Network *network)
{
    Event *first = &network->due.events[0];
    const Line *line = &network->lines[first->number];
    if (first->turn == line->turn)
        return 1;
    settle(network, 0, (Event){line->due, line->turn, first->number});
    return 0;
}

/* A message that alone would be on the line for `seconds`. */
static inline int join(Network *network, int64_t number, int64_t message, double seconds, double time, int64_t *turn)
{
    Line *line = &network->lines[number], *other = opposite(network, line, time);
    int idle = line->count == 0;
    line->served = idle ? 0.0 : served(network, line, time);
    if (enter(line, (User){line->served + seconds, message}))
        return -1;
    if (idle) {
        line->place = network->due.count++;
        await_next(network, line, time, ++*turn);
        settle(network, line->place, (Event){line->due, line->turn, number});
    } else {
        renew(network, line, time, ++*turn);
    }
    if (other)
        renew(network, other, time, ++*turn);
    return 0;
}

/* The messages that are through on the line that is due next (see `in_order`), into `through`; how many. */
static inline int64_t serve(Network *network, int64_t *through, int64_t *turn)
{
    Event event = network->due.events[0];
    Line *line = &network->lines[event.number], *other = opposite(network, line, event.time);
    int64_t count = 0;
    line->served = foremost(line)->until;
    double until = line->served * (1 + ROUNDING);
    do
        through[count++] = leave(line);
    while (line->count > 0 && foremost(line)->until <= until);
    if (line->count > 0) {
        await_next(network, line, event.time, ++*turn);
        settle(network, 0, (Event){line->due, line->turn, event.number});
    } else if (--network->due.count > 0) {
        settle(network, 0, network->due.events[network->due.count]);
    }
    if (other)
        renew(network, other, event.time, ++*turn);
    return count;
}

#endif
