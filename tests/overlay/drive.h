/* drive.h: what the front-end and the back-ends of a driven tool have in common. */
#ifndef DRIVE_H
#define DRIVE_H

#include "overlay.h"

enum { ASK = 1, ECHO, TELL, FLOOD, MAX_TEST_VALUES = 64 };

/* Bits that follow from these numbers; tests/overlay/wire.py has the same function. */
uint64_t mix(uint64_t seed, uint64_t backend, uint64_t wave, uint64_t value, uint64_t element);
int count_files(void); /* that this process has open */
int back_end(void);

#endif
