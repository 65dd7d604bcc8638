/* users.h: the messages on a line, with access to the one that leaves first. Messages that leave in the order of joining,
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
    int64_t opposite;          /* the line of the opposite direction; -1: none, or without return traffic */
    User *queue, *heap;        /* users that leave in the order of joining, and the others */
    int64_t first, last, capacity; /* of the queue */
    int64_t heap_count, heap_capacity;
} Line;

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
static inline int enter(Line *line, User user)
{
    line->count++;
    line->weight += user.weight;
    if (line->first == line->last)
        line->first = line->last = 0;
    if (line->last == 0 || !sooner(&user, &line->queue[line->last - 1])) {
        if (line->last == line->capacity && line->first > line->capacity / 2) {
            memmove(line->queue, line->queue + line->first, (size_t)(line->last - line->first) * sizeof user);
            line->last -= line->first;
            line->first = 0;
        }
        if (line->last == line->capacity && grow(&line->queue, &line->capacity))
            return -1;
        line->queue[line->last++] = user;
        return 0;
    }
    if (line->heap_count == line->heap_capacity && grow(&line->heap, &line->heap_capacity))
        return -1;
    User *heap = line->heap;
    int64_t at = line->heap_count++;
    for (; at > 0 && sooner(&user, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = user;
    return 0;
}

/* The user that leaves next. */
static inline const User *next_user(const Line *line)
{
    if (line->heap_count == 0)
        return &line->queue[line->first];
    return line->first == line->last || sooner(line->heap, &line->queue[line->first]) ? line->heap
                                                                                       : &line->queue[line->first];
}

static inline int64_t leave(Line *line)
{
    const User *next = next_user(line);
    int64_t message = next->message;
    line->weight = --line->count ? line->weight - next->weight : 0.0;
    if (next != line->heap || line->heap_count == 0) {
        line->first++;
        return message;
    }
    User *heap = line->heap, last = heap[--line->heap_count];
    int64_t at = 0;
    for (int64_t child; (child = 2 * at + 1) < line->heap_count; at = child) {
        if (child + 1 < line->heap_count && sooner(&heap[child + 1], &heap[child]))
            child++;
        if (!sooner(&heap[child], &last))
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return message;
}

#endif
