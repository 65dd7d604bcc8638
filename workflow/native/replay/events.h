/* events.h: a binary heap of events by time; simultaneous events are in the order of insertion.
 * In a header, so that compilers inline the calls, several for each message. */

#ifndef COMMODEL_EVENTS_H
#define COMMODEL_EVENTS_H

#include <stdint.h>
#include <stdlib.h>

#ifndef EVENT_TIME /* the type of times */
#define EVENT_TIME double
#endif

typedef struct {
    EVENT_TIME time;
    uint32_t order, number; /* order of insertion; number of a message, operation or link, depending on the heap */
} Event;

typedef struct {
    Event *events;
    int64_t count, capacity;
} Heap;

static inline int precedes(const Event *one, const Event *two)
{
    return (one->time < two->time) | ((one->time == two->time) & (one->order < two->order)); /* without branches, since they would be mispredicted */
}

/* Returns 0; -1: no memory. */
static inline int push(Heap *heap, Event event)
{
    if (heap->count == heap->capacity) {
        int64_t capacity = 2 * heap->capacity + 1024;
        Event *grown = realloc(heap->events, (size_t)capacity * sizeof *grown);
        if (grown == NULL)
            return -1;
        heap->events = grown;
        heap->capacity = capacity;
    }
    Event *events = heap->events;
    int64_t at = heap->count++;
    for (; at > 0 && precedes(&event, &events[(at - 1) / 2]); at = (at - 1) / 2)
        events[at] = events[(at - 1) / 2];
    events[at] = event;
    return 0;
}

/* Replaces the first event. */
static inline void replace_first(Heap *heap, Event event)
{
    Event *events = heap->events;
    int64_t at = 0;
    for (int64_t child; (child = 2 * at + 1) < heap->count; at = child) {
        child += child + 1 < heap->count ? precedes(&events[child + 1], &events[child]) : 0;
        if (!precedes(&events[child], &event))
            break;
        events[at] = events[child];
    }
    events[at] = event;
}

static inline void drop_first(Heap *heap)
{
    heap->count--;
    if (heap->count > 0)
        replace_first(heap, heap->events[heap->count]);
}

#endif
