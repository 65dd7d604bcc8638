/* What all ranks do and what it costs, as Python hands it over, and what is asked of messages, copied side by side. It may
 * come in parts: what ranks do one after the other, each part a program of its own on the same ranks and lines.
 * In a header for the same reason as events.h. */

#ifndef COMMODEL_PARTS_H
#define COMMODEL_PARTS_H

#include <stdint.h>
#include <stdlib.h>

#include "lines.h"

typedef struct {
    int64_t ranks, messages, lines, in_turn;
    const int64_t *places; /* of the ranks, one more than there are */
    Runs posted, opened, taken, finished;
    const int64_t *src, *dst, *pair;
    const uint8_t *asks;
    Runs passed; /* lines that a message passes */
    const int64_t *opposite; /* of each line the one that leads the other way, or -1 */
    int64_t bundled;         /* so many lines bundles pass, which messages pass instead; 0: there are no bundles */
    Runs bundles, meets;     /* of each bundle these lines, and the bundles that it meets */
} Program;

typedef struct {
    const double *send, *receive, *wire, *alone, *seconds, *work; /* seconds: of each of the passed */
    const double *bundles; /* of each line of each bundle: seconds */
    double back;
} Costs;

/* All that is asked of a message at a time, side by side: a line of a cache. */
typedef struct {
    double time;  /* when one of its ends was ready, of one that asks; then when it begins, then when it is through */
    int64_t turn; /* of those that begin at one time, which is first */
    double wire, receive, alone;
    int64_t uses; /* its first one */
    int32_t src, dst;
    int32_t still; /* lines that it is on */
    uint8_t met, queued, arrived, wanted; /* wanted: 1 by its receiver, 2 by its sender */
} Message;

typedef struct {
    int64_t line;
    double seconds;
} Use;

typedef struct {
    const Program *program; /* NULL: not known yet, or no longer needed */
    const Costs *costs;
    Message *messages;
    Use *uses;
} Part;

/* Copies what is asked of messages: 0, or -1. */
static inline int copy_messages(Part *part)
{
    const Program *program = part->program;
    const Costs *costs = part->costs;
    part->messages = calloc((size_t)program->messages + 1, sizeof *part->messages);
    part->uses = malloc(((size_t)program->passed.first[program->messages] + 1) * sizeof *part->uses);
    if (part->messages == NULL || part->uses == NULL)
        return -1;
    int64_t used = 0;
    for (int64_t row = 0; row < program->messages; row++) {
        Message *message = &part->messages[row];
        message->wire = costs->wire[row];
        message->receive = costs->receive[row];
        message->alone = costs->alone[row];
        message->src = (int32_t)program->src[row];
        message->dst = (int32_t)program->dst[row];
        message->uses = used;
        for (int64_t at = program->passed.first[row]; at < program->passed.first[row + 1]; at++)
            if (costs->seconds[at] != 0.0)
                part->uses[used++] = (Use){program->passed.rows[at], costs->seconds[at]};
        message->still = (int32_t)(used - message->uses);
    }
    return 0;
}

static inline void forget(Part *part)
{
    free(part->messages), free(part->uses);
    *part = (Part){0};
}

#endif
