/* bare.h: see bare.c. */
#ifndef BARE_H
#define BARE_H

typedef struct {
  double value;
  char rest[32]; /* as many bytes as a packet of one double has */
} BareMessage;

void bare_start(char *program,
                int leaves); /* which calls bare_leaf() when it is started as `program bare-leaf PORT NUMBER` */
_Noreturn void bare_leaf(int port, int number);
double bare_round(void); /* the sum of all leaves' numbers */
void bare_end(void);

#endif
