/* links.h: links of a network (shared links), each of which divides its bandwidth among its messages by their weights. `served`
 * is the service that a message of weight 1 present from the start has received; a message that joins leaves when `served`
 * has grown by its seconds over its weight (`until`). If messages cause traffic in the opposite direction (`opposite_share` of their share),
 * opposite links slow each other down. If messages are simulated in bundles, a `Link` is a bundle, which is as fast as its
 * slowest link. In a header for the same reason as events.h. */

#ifndef COMMODEL_LINKS_H
#define COMMODEL_LINKS_H

#include <stdint.h>

#include "events.h"
#include "users.h"

#define ROUNDING 1e-12 /* relative to the service: messages that end within it end together */
#define MIN_LOAD 1e-30 /* seconds, in place of 0 */

typedef struct {
    const int64_t *rows, *first;
} Runs;

typedef struct {
    Link *links;
    Heap due; /* links by the end of their next message, or earlier; only the last event of each link is valid */
    double opposite_share;
    Runs links_passed, contenders; /* of each bundle its links, and the bundles with common links */
    const double *seconds; /* of each link of a bundle: its time for one unit of service, without sharing */
    const int64_t *opposite; /* of each link of bundles */
    double *users;           /* weight of the messages on each of these links; NULL: no bundles */
} Network;

/* The weight of the messages that share a link, including those of the opposite one. */
static inline double load_of_link(double own, double other, double opposite_share)
{
    return own > other ? own + opposite_share * other : other + opposite_share * own;
}

static inline double load_of_bundle(const Network *network, int64_t number)
{
    double max_load = MIN_LOAD;
    for (int64_t at = network->links_passed.first[number]; at < network->links_passed.first[number + 1]; at++) {
        int64_t link = network->links_passed.rows[at], opposite = network->opposite[link];
        double other = opposite < 0 ? 0.0 : network->users[opposite];
        double load = load_of_link(network->users[link], other, network->opposite_share) * network->seconds[at];
        max_load = load > max_load ? load : max_load;
    }
    return max_load;
}

static inline double load(const Network *network, const Link *link)
{
    if (network->users)
        return load_of_bundle(network, link - network->links);
    double other = link->opposite < 0 ? 0.0 : network->links[link->opposite].weight;
    return other == 0.0 ? link->weight : load_of_link(link->weight, other, network->opposite_share);
}

/* Adds the weight of users to the links of a bundle. */
static inline void add_weight(Network *network, const Link *link, double change)
{
    int64_t number = link - network->links;
    if (network->users)
        for (int64_t at = network->links_passed.first[number]; at < network->links_passed.first[number + 1]; at++)
            network->users[network->links_passed.rows[at]] += change;
}

static inline double served(const Network *network, const Link *link, double time)
{
    return link->served + (time - link->since) / load(network, link);
}

static inline void set_due(Network *network, Link *link, double time, int64_t order)
{
    link->since = time;
    link->due = time + (next_user(link)->until - link->served) * load(network, link);
    link->order = order;
}

/* Returns the event of a link, and records it as the current one. */
static inline Event due_event(const Network *network, Link *link)
{
    link->event_time = link->due;
    link->event_order = link->order;
    return (Event){link->due, link->order, (uint32_t)(link - network->links)};
}

/* Updates the end of a link's next message after a change. Mostly the end is later, and the heap is updated lazily
 * (is_first_current). */
static inline int reschedule(Network *network, Link *link, double time, int64_t order)
{
    set_due(network, link, time, order);
    return link->due < link->event_time ? push(&network->due, due_event(network, link)) : 0;
}

/* The links that a link slows down: the opposite one, or for bundles those that share a link. A link that represents both
 * directions is its own opposite. `at` counts them; NULL: no more. */
static inline Link *affected_link(const Network *network, const Link *link, int64_t at)
{
    int64_t number = link - network->links;
    if (network->users == NULL)
        return at == 0 && link->opposite >= 0 && link->opposite != number ? &network->links[link->opposite] : NULL;
    at += network->contenders.first[number];
    return at < network->contenders.first[number + 1] ? &network->links[network->contenders.rows[at]] : NULL;
}

static inline void serve_affected(Network *network, const Link *link, double time)
{
    Link *other;
    for (int64_t at = 0; (other = affected_link(network, link, at)); at++)
        if (other->count > 0) {
            other->served = served(network, other, time);
            other->since = time;
        }
}

static inline int reschedule_affected(Network *network, const Link *link, double time, int64_t *order)
{
    Link *other;
    for (int64_t at = 0; (other = affected_link(network, link, at)); at++)
        if (other->count > 0 && reschedule(network, other, time, ++*order))
            return -1;
    return 0;
}

/* Whether the first event of the heap is current. If not, it is updated or dropped. */
static inline int is_first_current(Network *network)
{
    const Event *first = &network->due.events[0];
    Link *link = &network->links[first->number];
    if (first->order == link->order)
        return 1;
    if (first->order == link->event_order)
        replace_first(&network->due, due_event(network, link));
    else
        drop_first(&network->due);
    return 0;
}

/* Adds a user; `until` is the time in seconds for which it would occupy the link without sharing. */
static inline int join(Network *network, int64_t number, User user, double time, int64_t *order)
{
    Link *link = &network->links[number];
    int idle = link->count == 0;
    link->served = idle ? 0.0 : served(network, link, time);
    serve_affected(network, link, time);
    add_weight(network, link, user.weight);
    user.until = link->served + user.until / user.weight;
    if (enter(link, user))
        return -1;
    if (idle) {
        set_due(network, link, time, ++*order);
        if (push(&network->due, due_event(network, link)))
            return -1;
    } else if (reschedule(network, link, time, ++*order)) {
        return -1;
    }
    return reschedule_affected(network, link, time, order);
}

/* Writes the messages that leave the link of the next event (see is_first_current) to `through`; returns their number, or -1. */
static inline int64_t serve(Network *network, int64_t *through, int64_t *order)
{
    Event event = network->due.events[0];
    Link *link = &network->links[event.number];
    int64_t count = 0;
    double weight = link->weight;
    serve_affected(network, link, event.time);
    link->served = next_user(link)->until;
    double until = link->served * (1 + ROUNDING);
    do
        through[count++] = leave(link);
    while (link->count > 0 && next_user(link)->until <= until);
    add_weight(network, link, link->weight - weight);
    if (link->count > 0) {
        set_due(network, link, event.time, ++*order);
        replace_first(&network->due, due_event(network, link));
    } else {
        drop_first(&network->due);
    }
    return reschedule_affected(network, link, event.time, order) ? -1 : count;
}

#endif
