/* launch.h: how a process gets to its host, as a pure function from a template to a command. */
#ifndef OVERLAY_LAUNCH_H
#define OVERLAY_LAUNCH_H

/* The template with {host} replaced in every word, and `program --boot` behind it; free_command() it. NULL with
 * overlay_error() where a word would be another thing to a program or a shell on the way. */
char **launch_command(char *const *launch, const char *host, const char *program);
void free_command(char **command);

#endif
