/* Lines of a network, each of which serves the messages on it in equal shares. `served` is what a message has had that
 * was on the line from its beginning; one that joins is through when `served` has grown by its seconds (`until`).
 * Where something comes back for each message (`back` of its share), lines that lead opposite ways hold each other up.
 * Where messages are followed in bundles a `Line` here is a bundle, which is as fast as the slowest line that it passes.
 * In a header for the same reason as events.h. */

#ifndef COMMODEL_LINES_H
#define COMMODEL_LINES_H

#include <stdint.h>

#include "events.h"
#include "users.h"

#define ROUNDING 1e-12 /* of what a line has served: who is through by as much later is through at the same time */
#define LEAST 1e-30 /* seconds: what no seconds at all are taken for */

typedef struct {
    const int64_t *rows, *first;
} Runs;

typedef struct {
    Line *lines;
    Heap due; /* lines by when their next message is through, or sooner; the last that came of each line counts */
    double back;
    Runs passed, meets; /* of each bundle the lines that it passes, and others that it holds up */
    const double *seconds; /* that what is served as one would be on each of the passed, alone */
    const int64_t *opposite; /* of each line that bundles pass */
    int64_t *users;          /* of each of these; NULL: there are no bundles */
} Network;

/* Among how many each of a line's users has its share. */
static inline double load_of_line(int64_t own, int64_t other, double back)
{
    return own > other ? (double)own + back * (double)other : (double)other + back * (double)own;
}

static inline double load_of_bundle(const Network *network, int64_t number)
{
    double most = LEAST;
    for (int64_t at = network->passed.first[number]; at < network->passed.first[number + 1]; at++) {
        int64_t line = network->passed.rows[at], opposite = network->opposite[line];
        int64_t other = opposite < 0 ? 0 : network->users[opposite];
        double load = load_of_line(network->users[line], other, network->back) * network->seconds[at];
        most = load > most ? load : most;
    }
    return most;
}

static inline double load(const Network *network, const Line *line)
{
    if (network->users)
        return load_of_bundle(network, line - network->lines);
    int64_t other = line->opposite < 0 ? 0 : network->lines[line->opposite].count;
    return other == 0 ? (double)line->count : load_of_line(line->count, other, network->back);
}

/* So many more are on the lines of a bundle. */
static inline void count_users(Network *network, const Line *line, int64_t more)
{
    int64_t number = line - network->lines;
    if (network->users)
        for (int64_t at = network->passed.first[number]; at < network->passed.first[number + 1]; at++)
            network->users[network->passed.rows[at]] += more;
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

/* As it is known from now on among those due. */
static inline Event known(const Network *network, Line *line)
{
    line->known = line->due;
    line->known_turn = line->turn;
    return (Event){line->due, line->turn, (uint32_t)(line - network->lines)};
}

/* Of a line that somebody has joined or left, or that another one holds up. Mostly its next one is put off by that, and
 * that can wait (`in_order`). */
static inline int renew(Network *network, Line *line, double time, int64_t turn)
{
    await_next(network, line, time, turn);
    return line->due < line->known ? push(&network->due, known(network, line)) : 0;
}

/* Those that a line holds up, the one that leads the other way; a line that stands for two that do the same is its own.
 * `at` counts them; NULL: there are no more. */
static inline Line *held_up(const Network *network, const Line *line, int64_t at)
{
    int64_t number = line - network->lines;
    if (network->users == NULL)
        return at == 0 && line->opposite >= 0 && line->opposite != number ? &network->lines[line->opposite] : NULL;
    at += network->meets.first[number];
    return at < network->meets.first[number + 1] ? &network->lines[network->meets.rows[at]] : NULL;
}

static inline void serve_held_up(Network *network, const Line *line, double time)
{
    Line *other;
    for (int64_t at = 0; (other = held_up(network, line, at)); at++)
        if (other->count > 0) {
            other->served = served(network, other, time);
            other->since = time;
        }
}

static inline int renew_held_up(Network *network, const Line *line, double time, int64_t *turn)
{
    Line *other;
    for (int64_t at = 0; (other = held_up(network, line, at)); at++)
        if (other->count > 0 && renew(network, other, time, ++*turn))
            return -1;
    return 0;
}

/* Whether the first of those due is so, at that time. If not it is put where it belongs. */
static inline int in_order(Network *network)
{
    const Event *first = &network->due.events[0];
    Line *line = &network->lines[first->number];
    if (first->turn == line->turn)
        return 1;
    if (first->turn == line->known_turn)
        replace_first(&network->due, known(network, line));
    else
        drop_first(&network->due);
    return 0;
}

/* A message that alone would be on the line for `seconds`. */
static inline int join(Network *network, int64_t number, int64_t message, double seconds, double time, int64_t *turn)
{
    Line *line = &network->lines[number];
    int idle = line->count == 0;
    line->served = idle ? 0.0 : served(network, line, time);
    serve_held_up(network, line, time);
    count_users(network, line, 1);
    if (enter(line, (User){line->served + seconds, message}))
        return -1;
    if (idle) {
        await_next(network, line, time, ++*turn);
        if (push(&network->due, known(network, line)))
            return -1;
    } else if (renew(network, line, time, ++*turn)) {
        return -1;
    }
    return renew_held_up(network, line, time, turn);
}

/* The messages that are through on the line that is due next (see `in_order`), into `through`; how many, or -1. */
static inline int64_t serve(Network *network, int64_t *through, int64_t *turn)
{
    Event event = network->due.events[0];
    Line *line = &network->lines[event.number];
    int64_t count = 0;
    serve_held_up(network, line, event.time);
    line->served = foremost(line)->until;
    double until = line->served * (1 + ROUNDING);
    do
        through[count++] = leave(line);
    while (line->count > 0 && foremost(line)->until <= until);
    count_users(network, line, -count);
    if (line->count > 0) {
        await_next(network, line, event.time, ++*turn);
        replace_first(&network->due, known(network, line));
    } else {
        drop_first(&network->due);
    }
    return renew_held_up(network, line, event.time, turn) ? -1 : count;
}

#endif
