/* cases.c: reads the case file, checks its syntax completely before the first measurement, and shuffles the cases. */
#include "harness.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 16, MAX_WAVES = 100000 };
static const char waves[] = "waves";

_Noreturn void case_error(const Case *c, const char *column, const char *found, const char *wanted)
{
  user_error("%s:%d: column %s: found '%s', wanted %s", c->file, c->line, column, found, wanted);
}

void require_ranks(const Case *c, const char *column, long long needed, int ranks)
{
  if (needed <= ranks) return;
  char found[64], wanted[64];
  snprintf(found, sizeof found, "%d ranks", ranks);
  snprintf(wanted, sizeof wanted, "at least %lld ranks for this case", needed);
  case_error(c, column, found, wanted);
}

static int find_column(const Column *columns, int ncolumns, const char *name)
{
  for (int k = 0; k < ncolumns; k++)
    if (strcmp(columns[k].name, name) == 0) return k;
  return -1;
}

/* Sets field_of[k] to the index, in a line of the file, of the program's column k. Sets field_of[ncolumns] to the index of
 * the column waves, or to 0 without it: field 0 is the id. Returns the number of fields of the header. */
static int parse_header(const char *path, char *line, const Column *columns, int ncolumns, bool streams, int *field_of)
{
  char *names[MAX_COLUMNS];
  int nfields = split_fields(line, names, MAX_COLUMNS);
  if (strcmp(names[0], "id") != 0) user_error("%s:1: column 1: found '%s', wanted 'id'", path, names[0]);
  for (int k = 0; k < ncolumns; k++) field_of[k] = -1;
  field_of[ncolumns] = 0;
  for (int f = 1; f < nfields; f++) {
    const char *name = f < MAX_COLUMNS ? names[f] : "too many columns";
    if (streams && !field_of[ncolumns] && strcmp(name, waves) == 0) {
      field_of[ncolumns] = f;
      continue;
    }
    int k = f < MAX_COLUMNS ? find_column(columns, ncolumns, name) : -1;
    if (k < 0 || field_of[k] >= 0) {
      char wanted[256] = "";
      for (int j = 0; j < ncolumns; j++)
        snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "%s%s", j ? "," : "", columns[j].name);
      user_error("%s:1: column %d: found %s'%s', wanted the columns id,%s", path, f + 1,
                 k < 0 ? "unknown " : "again ", name, wanted);
    }
    field_of[k] = f;
  }
  for (int k = 0; k < ncolumns; k++)
    if (field_of[k] < 0)
      user_error("%s:1: column %s: found nothing, wanted %s", path, columns[k].name, columns[k].meaning);
  return nfields;
}

static void parse_field(const Case *c, const Column *column, Field *field)
{
  bool good = *field->text != '\0';
  switch (column->kind) {
  case COUNT:
    good = parse_integer(field->text, &field->count) && field->count >= 0 && field->count <= INT_MAX;
    if (!good) case_error(c, column->name, field->text, "a whole number from 0 to 2147483647");
    return;
  case BYTES:
    good = parse_integer(field->text, &field->count) && field->count >= 0;
    if (!good) case_error(c, column->name, field->text, "a whole number of bytes from 0");
    if (field->count > INT_MAX)
      case_error(c, column->name, field->text, "at most 2147483647 bytes, the most that one MPI message can count");
    return;
  case NUMBER:
    good = parse_real(field->text, &field->real) && field->real >= 0;
    if (!good) case_error(c, column->name, field->text, "a number from 0");
    return;
  case WORD:
    if (!good) case_error(c, column->name, field->text, column->meaning);
    return;
  }
}

static int parse_waves(const Case *c, const char *text)
{
  long long number;
  char wanted[64];
  snprintf(wanted, sizeof wanted, "a whole number from 1 to %d", MAX_WAVES);
  if (!parse_integer(text, &number) || number < 1 || number > MAX_WAVES) case_error(c, waves, text, wanted);
  return (int)number;
}

static void check_id(const Case *c)
{
  const char *letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  size_t length = strlen(c->id);
  if (length == 0 || length > 200 || c->id[0] == '.' || strspn(c->id, letters) != length)
    case_error(c, "id", c->id, "a file name of at most 200 letters, digits, '.', '_' and '-' that does not start with '.'");
}

static int compare_ids(const void *a, const void *b)
{
  const Case *x = *(const Case *const *)a, *y = *(const Case *const *)b;
  int order = strcmp(x->id, y->id);
  return order ? order : (x->line > y->line) - (x->line < y->line);
}

static void check_unique(const CaseFile *file)
{
  const Case **sorted = allocate((size_t)file->count, sizeof *sorted);
  for (int i = 0; i < file->count; i++) sorted[i] = &file->cases[i];
  qsort(sorted, (size_t)file->count, sizeof *sorted, compare_ids);
  for (int i = 1; i < file->count; i++)
    if (strcmp(sorted[i - 1]->id, sorted[i]->id) == 0) {
      char wanted[64];
      snprintf(wanted, sizeof wanted, "an id that line %d does not have", sorted[i - 1]->line);
      case_error(sorted[i], "id", sorted[i]->id, wanted);
    }
  free(sorted);
}

CaseFile parse_cases(const char *path, char *text, const Column *columns, int ncolumns, bool streams)
{
  CaseFile file = {.text = text};
  int lines = 1;
  for (const char *c = text; *c; c++) lines += *c == '\n';
  file.cases = allocate((size_t)lines, sizeof *file.cases);

  char *cursor = text, *fields[MAX_COLUMNS], *line = next_line(&cursor);
  int field_of[MAX_COLUMNS + 1];
  if (!line) user_error("%s:1: found an empty file, wanted a header", path);
  int wanted = parse_header(path, line, columns, ncolumns, streams, field_of);
  for (int number = 2; (line = next_line(&cursor)); number++) {
    if (!*line) continue;
    int nfields = split_fields(line, fields, MAX_COLUMNS);
    if (nfields != wanted) user_error("%s:%d: found %d fields, wanted %d", path, number, nfields, wanted);
    Case *c = &file.cases[file.count++];
    *c = (Case){.file = path, .line = number, .id = fields[0], .waves = 1};
    c->fields = allocate((size_t)ncolumns, sizeof *c->fields);
    check_id(c);
    for (int k = 0; k < ncolumns; k++) {
      c->fields[k].text = fields[field_of[k]];
      parse_field(c, &columns[k], &c->fields[k]);
    }
    if (field_of[ncolumns]) c->waves = parse_waves(c, fields[field_of[ncolumns]]);
  }
  check_unique(&file);
  return file;
}

void free_cases(CaseFile *file)
{
  for (int i = 0; i < file->count; i++) free(file->cases[i].fields);
  free(file->cases);
  free(file->text);
}

static uint64_t splitmix64(uint64_t *state)
{
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void shuffle(int *order, int n, uint64_t seed)
{
  for (int i = 0; i < n; i++) order[i] = i;
  if (seed == 0) return;
  for (int i = n - 1; i > 0; i--) {
    int j = (int)(splitmix64(&seed) % (uint64_t)(i + 1));
    int swapped = order[i];
    order[i] = order[j];
    order[j] = swapped;
  }
}
