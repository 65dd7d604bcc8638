/* Lines of a network, each of which serves the messages on it in equal shares. `served` is what a message has had that
 * was on the line from its beginning; one that joins is through when `served` has grown by its seconds (`until`).
 * In a header for the same reason as events.h. */

#ifndef COMMODEL_LINES_H
#define COMMODEL_LINES_H

#include <stdint.h>

#include "events.h"

#define ROUNDING 1e-12 /* as in Python */

typedef struct {
    double until;
    int64_t message;
} User;

typedef struct {
    double served, since;
    int64_t count, room, place; /* its users are from `room` on; where it is among those due */
} Line;

typedef struct {
    Line *lines;
    User *users;
    Heap due; /* lines with somebody on them, each once, by when their next message is through */
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
        if (child + 1 < network->due.count && before(&events[child + 1], &events[child]))
            child++;
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

static inline void await_next(Network *network, int64_t number, double time, int64_t turn)
{
    Line *line = &network->lines[number];
    line->since = time;
    double due = time + (network->users[line->room].until - line->served) * (double)line->count;
    settle(network, line->place, (Event){due, turn, number});
}

/* A message that alone would be on the line for `seconds`. */
static inline void join(Network *network, int64_t number, int64_t message, double seconds, double time, int64_t turn)
{
    Line *line = &network->lines[number];
    User *users = network->users + line->room;
    if (line->count == 0)
        line->place = network->due.count++;
    line->served = line->count ? line->served + (time - line->since) / (double)line->count : 0.0;
    User user = {line->served + seconds, message};
    int64_t at = line->count++;
    for (; at > 0 && sooner(&user, &users[(at - 1) / 2]); at = (at - 1) / 2)
        users[at] = users[(at - 1) / 2];
    users[at] = user;
    await_next(network, number, time, turn);
}

static inline User leave(Network *network, Line *line)
{
    User *users = network->users + line->room;
    User first = users[0], last = users[--line->count];
    int64_t at = 0;
    for (int64_t child; (child = 2 * at + 1) < line->count; at = child) {
        if (child + 1 < line->count && sooner(&users[child + 1], &users[child]))
            child++;
        if (!sooner(&users[child], &last))
            break;
        users[at] = users[child];
    }
    users[at] = last;
    return first;
}

/* The messages that are through on the line that is due next, into `through`; how many. */
static inline int64_t serve(Network *network, int64_t *through, int64_t turn)
{
    Event event = network->due.events[0];
    Line *line = &network->lines[event.number];
    int64_t count = 0;
    line->served = network->users[line->room].until;
    double until = line->served * (1 + ROUNDING);
    do
        through[count++] = leave(network, line).message;
    while (line->count > 0 && network->users[line->room].until <= until);
    if (line->count > 0)
        await_next(network, event.number, event.time, turn);
    else if (--network->due.count > 0)
        settle(network, 0, network->due.events[network->due.count]);
    return count;
}

#endif
