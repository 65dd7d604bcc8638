/* users.h: the messages on a link, with access to the one that leaves first. Messages that leave in the order of joining,
 * as those of one size do, are in a queue, others in a heap. In a header for the same reason as events.h. */

#ifndef COMMODEL_USERS_H
#define COMMODEL_USERS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    double until, weight;
    int64_t message;
} User;

typedef struct {
    double served, since, due; /* due: end of its next message */
    double weight;             /* sum over its users */
    double event_time;              /* time of its current event */
    uint32_t order, event_order; /* order of simultaneous events */
    int64_t count;             /* number of users */
    int64_t opposite;          /* the link of the opposite direction; -1: none, or without return traffic */
    User *queue, *heap;        /* users that leave in the order of joining, and the others */
    int64_t first, last, capacity; /* of the queue */
    int64_t heap_count, heap_capacity;
} Link;

static inline int sooner(const User *one, const User *two)
{
    return one->until < two->until || (one->until == two->until && one->message < two->message);
}

/* 0, or -1: no memory. */
static inline int grow(User **users, int64_t *capacity)
{
    int64_t capacity_wanted = 2 * *capacity + 8;
    User *grown = realloc(*users, (size_t)capacity_wanted * sizeof *grown);
    if (grown == NULL)
        return -1;
    *users = grown;
    *capacity = capacity_wanted;
    return 0;
}

/* Messages of one size leave in the order of joining, whatever the number of users. */
static inline int enter(Link *link, User user)
{
    link->count++;
    link->weight += user.weight;
    if (link->first == link->last)
        link->first = link->last = 0;
    if (link->last == 0 || !sooner(&user, &link->queue[link->last - 1])) {
        if (link->last == link->capacity && link->first > link->capacity / 2) {
            memmove(link->queue, link->queue + link->first, (size_t)(link->last - link->first) * sizeof user);
            link->last -= link->first;
            link->first = 0;
        }
        if (link->last == link->capacity && grow(&link->queue, &link->capacity))
            return -1;
        link->queue[link->last++] = user;
        return 0;
    }
    if (link->heap_count == link->heap_capacity && grow(&link->heap, &link->heap_capacity))
        return -1;
    User *heap = link->heap;
    int64_t at = link->heap_count++;
    for (; at > 0 && sooner(&user, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = user;
    return 0;
}

/* The user that leaves next. */
static inline const User *next_user(const Link *link)
{
    if (link->heap_count == 0)
        return &link->queue[link->first];
    return link->first == link->last || sooner(link->heap, &link->queue[link->first]) ? link->heap
                                                                                       : &link->queue[link->first];
}

static inline int64_t leave(Link *link)
{
    const User *next = next_user(link);
    int64_t message = next->message;
    link->weight = --link->count ? link->weight - next->weight : 0.0;
    if (next != link->heap || link->heap_count == 0) {
        link->first++;
        return message;
    }
    User *heap = link->heap, last = heap[--link->heap_count];
    int64_t at = 0;
    for (int64_t child; (child = 2 * at + 1) < link->heap_count; at = child) {
        if (child + 1 < link->heap_count && sooner(&heap[child + 1], &heap[child]))
            child++;
        if (!sooner(&heap[child], &last))
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return message;
}

#endif
