/* play.h: the state of a simulation: the step of each rank, and the messages that begin next, in the order of time. Of
 * the messages that a rank has posted, only the first is in that heap; the others are in its queue.
 * In a header for the same reason as events.h. */

#ifndef COMMODEL_PLAY_H
#define COMMODEL_PLAY_H

#include <stdint.h>

#include "parts.h"

enum { KEPT_PARTS = 16 }; /* as in models/evaluation/time_order.py */

typedef struct {
    double time, receive;
} Arrival;

/* Loads a part; parts before `oldest` may be released. It may reduce the number of parts, `count`. Returns 0, or -1. */
typedef int (*Feed)(int64_t part, int64_t oldest, int64_t *count, const Program **program, const Costs **costs);

/* Position of a rank in its posted messages. */
typedef struct {
    int64_t part, at;
} Position;

typedef struct {
    Feed feed;
    Part *parts;
    int64_t ranks, count, oldest; /* count: of parts; those before `oldest` are released */
    int shift;                    /* low bits of a message's number, which are its row; the high bits are its part */
    double *done;
    double *ends; /* when each rank is done with the last parts: by part modulo KEPT_PARTS, and rank; NULL: not wanted */
    Arrival *arrivals;
    int64_t arrivals_capacity, leaving_capacity;
    int64_t *part, *step, *missing, *leaving;
    Position *queue, *queue_end; /* each rank's next message to begin, and the end of its posted ones */
    int64_t *next, *head, *tail; /* of a pair of ranks whose messages do not overlap: the message in flight, and those that wait */
    uint8_t *posted;
    Network network;
    Heap beginnings; /* messages by the time of their begin, or at which they reach a link; of a rank's queue only the first */
    int64_t order;
} Play;

static inline Message *message_of(const Play *play, int64_t number)
{
    return &play->parts[number >> play->shift].messages[number & (((int64_t)1 << play->shift) - 1)];
}

static inline int64_t message_number(const Play *play, Position here)
{
    return here.part << play->shift | play->parts[here.part].program->send_posts.rows[here.at];
}

static int schedule_begin(Play *play, double time, int64_t message)
{
    return push(&play->beginnings, (Event){time, ++play->order, message});
}

/* Adds an eager message. A rank usually posts in the order of time, so the message is added to its queue. */
static int enqueue(Play *play, int64_t rank, double time, Position here)
{
    int64_t number = message_number(play, here);
    Position *end = &play->queue_end[rank], *queue = &play->queue[rank];
    int waiting = queue->part < end->part || queue->at < end->at;
    if (waiting && time < message_of(play, message_number(play, (Position){end->part, end->at - 1}))->time)
        return schedule_begin(play, time, number);
    Message *message = message_of(play, number);
    message->queued = 1;
    message->time = time;
    message->order = ++play->order;
    if (!waiting)
        *queue = here;
    *end = (Position){here.part, here.at + 1};
    return waiting ? 0 : push(&play->beginnings, (Event){time, message->order, number});
}

static int match_ends(Play *play, int64_t number, double time)
{
    Message *message = message_of(play, number);
    if (message->begin == NOT_READY) {
        message->begin = ONE_END_READY;
        message->time = time;
        return 0;
    }
    return schedule_begin(play, time > message->time ? time : message->time, number);
}

/* Removes the message that begins first, and replaces it by the next one of its rank. */
static Event take_next_beginning(Play *play)
{
    Event first = play->beginnings.events[0];
    Message *message = message_of(play, first.number);
    if (!message->queued) {
        drop_first(&play->beginnings);
        return first;
    }
    message->queued = 0;
    int64_t rank = message->src;
    Position *queue = &play->queue[rank], end = play->queue_end[rank];
    for (queue->at++; queue->part < end.part || queue->at < end.at; queue->at++) {
        const Program *program = play->parts[queue->part].program;
        while (queue->at == program->send_posts.first[program->steps[rank + 1]]) {
            program = play->parts[++queue->part].program;
            queue->at = program->send_posts.first[program->steps[rank]];
        }
        int64_t number = message_number(play, *queue);
        if ((message = message_of(play, number))->queued) {
            replace_first(&play->beginnings, (Event){message->time, message->order, number});
            return first;
        }
    }
    drop_first(&play->beginnings);
    return first;
}

#endif
