/* The messages on a line, with access to the one that leaves first. Messages of one size leave in the order of joining and
 * are in a queue; others are in a heap. In a header for the same reason as events.h. */

#ifndef COMMODEL_USERS_H
#define COMMODEL_USERS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    double until;
    int64_t message;
} User;

typedef struct {
    double served, since, due; /* due: end of its next message */
    double known;              /* time of its current event */
    uint32_t turn, known_turn; /* order of simultaneous events */
    int64_t count;             /* number of users */
    int64_t opposite;          /* the line of the opposite direction; -1: none, or without return traffic */
    User *queue, *heap;        /* users that leave in the order of joining, and the others */
    int64_t first, last, room; /* of the queue */
    int64_t others, others_room;
} Line;

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

/* Messages of one size leave in the order of joining, whatever the number of users. */
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

/* The user that leaves next. */
static inline const User *next_user(const Line *line)
{
    if (line->others == 0)
        return &line->queue[line->first];
    return line->first == line->last || sooner(line->heap, &line->queue[line->first]) ? line->heap
                                                                                       : &line->queue[line->first];
}

static inline int64_t leave(Line *line)
{
    const User *next = next_user(line);
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

#endif
