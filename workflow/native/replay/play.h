/* The state of a simulation: the place of each rank, and the messages that begin next, in the order of time. Of messages
 * that a rank posts one after the other, only the first is in that heap; the others queue behind it.
 * In a header for the same reason as events.h. */

#ifndef COMMODEL_PLAY_H
#define COMMODEL_PLAY_H

#include <stdint.h>

#include "parts.h"

typedef struct {
    double time, receive;
} Arrival;

/* Loads a part; parts before `oldest` may be released. Returns 0, or -1. */
typedef int (*Feed)(int64_t part, int64_t oldest, const Program **program, const Costs **costs);

/* Position of a rank in its posted messages. */
typedef struct {
    int64_t part, at;
} Position;

typedef struct {
    Feed feed;
    Part *parts;
    int64_t ranks, count, oldest; /* count: of parts; those before `oldest` are released */
    int shift;                    /* number of low bits of a message's number that are its row; the others are its part */
    double *done;
    Arrival *arrivals;
    int64_t arrivals_room, leaving_room;
    int64_t *part, *place, *lacking, *leaving;
    Position *queue, *posted;    /* each rank's next message to begin, and the end of its posted ones */
    int64_t *next, *head, *tail; /* of a pair of ranks that send in turn: the message in flight, and those that wait */
    uint8_t *entered;
    Network network;
    Heap coming; /* messages by begin; of a rank's queue only the first */
    int64_t turn;
} Play;

static inline Message *message_of(const Play *play, int64_t number)
{
    return &play->parts[number >> play->shift].messages[number & (((int64_t)1 << play->shift) - 1)];
}

static inline int64_t number_at(const Play *play, Position here)
{
    return here.part << play->shift | play->parts[here.part].program->posted.rows[here.at];
}

static int schedule_begin(Play *play, double time, int64_t message)
{
    return push(&play->coming, (Event){time, ++play->turn, message});
}

/* Adds an eager message. Ranks post in the order of time, so it begins no sooner than those before it, and queues behind
 * them. */
static int enqueue(Play *play, int64_t rank, double time, Position here)
{
    int64_t number = number_at(play, here);
    Position *posted = &play->posted[rank], *queue = &play->queue[rank];
    int waiting = queue->part < posted->part || queue->at < posted->at;
    if (waiting && time < message_of(play, number_at(play, (Position){posted->part, posted->at - 1}))->time)
        return schedule_begin(play, time, number);
    Message *message = message_of(play, number);
    message->queued = 1;
    message->time = time;
    message->turn = ++play->turn;
    if (!waiting)
        *queue = here;
    *posted = (Position){here.part, here.at + 1};
    return waiting ? 0 : push(&play->coming, (Event){time, message->turn, number});
}

static int match_ends(Play *play, int64_t number, double time)
{
    Message *message = message_of(play, number);
    if (!message->met) {
        message->met = 1;
        message->time = time;
        return 0;
    }
    return schedule_begin(play, time > message->time ? time : message->time, number);
}

/* Removes the message that begins first, and replaces it by the next one of its rank. */
static Event next_to_begin(Play *play)
{
    Event first = play->coming.events[0];
    Message *message = message_of(play, first.number);
    if (!message->queued) {
        drop_first(&play->coming);
        return first;
    }
    message->queued = 0;
    int64_t rank = message->src;
    Position *queue = &play->queue[rank], posted = play->posted[rank];
    for (queue->at++; queue->part < posted.part || queue->at < posted.at; queue->at++) {
        const Program *program = play->parts[queue->part].program;
        while (queue->at == program->posted.first[program->places[rank + 1]]) {
            program = play->parts[++queue->part].program;
            queue->at = program->posted.first[program->places[rank]];
        }
        int64_t number = number_at(play, *queue);
        if ((message = message_of(play, number))->queued) {
            replace_first(&play->coming, (Event){message->time, message->turn, number});
            return first;
        }
    }
    drop_first(&play->coming);
    return first;
}

#endif
