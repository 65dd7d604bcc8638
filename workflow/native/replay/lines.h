/* lines.h: lines of a network (shared links), each of which divides its bandwidth among its messages by their weights. `served`
 * is the service that a message of weight 1 present from the start has received; a message that joins leaves when `served`
 * has grown by its seconds over its weight (`until`). If messages cause traffic in the opposite direction (`opposite_share` of their share),
 * opposite lines slow each other down. If messages are simulated in bundles, a `Line` is a bundle, which is as fast as its
 * slowest line. In a header for the same reason as events.h. */

#ifndef COMMODEL_LINES_H
#define COMMODEL_LINES_H

#include <stdint.h>

#include "events.h"
#include "users.h"

#define ROUNDING 1e-12 /* relative to the service: messages that end within it end together */
#define MIN_LOAD 1e-30 /* seconds, in place of 0 */

typedef struct {
    const int64_t *rows, *first;
} Runs;

typedef struct {
    Line *lines;
    Heap due; /* lines by the end of their next message, or earlier; only the last event of each line is valid */
    double opposite_share;
    Runs lines_passed, contenders; /* of each bundle its lines, and the bundles with common lines */
    const double *seconds; /* of each line of a bundle: its time for one unit of service, without sharing */
    const int64_t *opposite; /* of each line of bundles */
    double *users;           /* weight of the messages on each of these lines; NULL: no bundles */
} Network;

/* The weight of the messages that share a line, including those of the opposite one. */
static inline double load_of_line(double own, double other, double opposite_share)
{
    return own > other ? own + opposite_share * other : other + opposite_share * own;
}

static inline double load_of_bundle(const Network *network, int64_t number)
{
    double max_load = MIN_LOAD;
    for (int64_t at = network->lines_passed.first[number]; at < network->lines_passed.first[number + 1]; at++) {
        int64_t line = network->lines_passed.rows[at], opposite = network->opposite[line];
        double other = opposite < 0 ? 0.0 : network->users[opposite];
        double load = load_of_line(network->users[line], other, network->opposite_share) * network->seconds[at];
        max_load = load > max_load ? load : max_load;
    }
    return max_load;
}

static inline double load(const Network *network, const Line *line)
{
    if (network->users)
        return load_of_bundle(network, line - network->lines);
    double other = line->opposite < 0 ? 0.0 : network->lines[line->opposite].weight;
    return other == 0.0 ? line->weight : load_of_line(line->weight, other, network->opposite_share);
}

/* Adds the weight of users to the lines of a bundle. */
static inline void add_weight(Network *network, const Line *line, double change)
{
    int64_t number = line - network->lines;
    if (network->users)
        for (int64_t at = network->lines_passed.first[number]; at < network->lines_passed.first[number + 1]; at++)
            network->users[network->lines_passed.rows[at]] += change;
}

static inline double served(const Network *network, const Line *line, double time)
{
    return line->served + (time - line->since) / load(network, line);
}

static inline void set_due(Network *network, Line *line, double time, int64_t order)
{
    line->since = time;
    line->due = time + (next_user(line)->until - line->served) * load(network, line);
    line->order = order;
}

/* Returns the event of a line, and records it as the current one. */
static inline Event due_event(const Network *network, Line *line)
{
    line->event_time = line->due;
    line->event_order = line->order;
    return (Event){line->due, line->order, (uint32_t)(line - network->lines)};
}

/* Updates the end of a line's next message after a change. Mostly the end is later, and the heap is updated lazily
 * (`in_order`). */
static inline int reschedule(Network *network, Line *line, double time, int64_t order)
{
    set_due(network, line, time, order);
    return line->due < line->event_time ? push(&network->due, due_event(network, line)) : 0;
}

/* The lines that a line slows down: the opposite one, or for bundles those that share a line. A line that represents both
 * directions is its own opposite. `at` counts them; NULL: no more. */
static inline Line *affected_line(const Network *network, const Line *line, int64_t at)
{
    int64_t number = line - network->lines;
    if (network->users == NULL)
        return at == 0 && line->opposite >= 0 && line->opposite != number ? &network->lines[line->opposite] : NULL;
    at += network->contenders.first[number];
    return at < network->contenders.first[number + 1] ? &network->lines[network->contenders.rows[at]] : NULL;
}

static inline void serve_affected(Network *network, const Line *line, double time)
{
    Line *other;
    for (int64_t at = 0; (other = affected_line(network, line, at)); at++)
        if (other->count > 0) {
            other->served = served(network, other, time);
            other->since = time;
        }
}

static inline int reschedule_affected(Network *network, const Line *line, double time, int64_t *order)
{
    Line *other;
    for (int64_t at = 0; (other = affected_line(network, line, at)); at++)
        if (other->count > 0 && reschedule(network, other, time, ++*order))
            return -1;
    return 0;
}

/* Whether the first event of the heap is current. If not, it is updated or dropped. */
static inline int is_first_current(Network *network)
{
    const Event *first = &network->due.events[0];
    Line *line = &network->lines[first->number];
    if (first->order == line->order)
        return 1;
    if (first->order == line->event_order)
        replace_first(&network->due, due_event(network, line));
    else
        drop_first(&network->due);
    return 0;
}

/* Adds a user; `until` is the time in seconds for which it would occupy the line without sharing. */
static inline int join(Network *network, int64_t number, User user, double time, int64_t *order)
{
    Line *line = &network->lines[number];
    int idle = line->count == 0;
    line->served = idle ? 0.0 : served(network, line, time);
    serve_affected(network, line, time);
    add_weight(network, line, user.weight);
    user.until = line->served + user.until / user.weight;
    if (enter(line, user))
        return -1;
    if (idle) {
        set_due(network, line, time, ++*order);
        if (push(&network->due, due_event(network, line)))
            return -1;
    } else if (reschedule(network, line, time, ++*order)) {
        return -1;
    }
    return reschedule_affected(network, line, time, order);
}

/* Writes the messages that leave the line of the next event (see `in_order`) to `through`; returns their number, or -1. */
static inline int64_t serve(Network *network, int64_t *through, int64_t *order)
{
    Event event = network->due.events[0];
    Line *line = &network->lines[event.number];
    int64_t count = 0;
    double weight = line->weight;
    serve_affected(network, line, event.time);
    line->served = next_user(line)->until;
    double until = line->served * (1 + ROUNDING);
    do
        through[count++] = leave(line);
    while (line->count > 0 && next_user(line)->until <= until);
    add_weight(network, line, line->weight - weight);
    if (line->count > 0) {
        set_due(network, line, event.time, ++*order);
        replace_first(&network->due, due_event(network, line));
    } else {
        drop_first(&network->due);
    }
    return reschedule_affected(network, line, event.time, order) ? -1 : count;
}

#endif
